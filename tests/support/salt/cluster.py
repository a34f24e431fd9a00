# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A master with its minions, in a folder with a name that is short enough for sockets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.repository import REPOSITORY
from support.salt.master import Master
from support.salt.minion import Minion
from support.salt.salt_installation import SaltInstallation

TREE = REPOSITORY / "salt"


class Cluster:
    def __init__(self, folder: Path, installation: SaltInstallation, file_roots: list[Path], **config: Any) -> None:
        self.folder = folder
        self.installation = installation
        self.master = Master(folder / "master", installation, file_roots, **config)
        self.minions: dict[str, Minion] = {}

    def minion(self, name: str, **config: Any) -> Minion:
        """Return a new minion, which is not started."""
        self.minions[name] = Minion(name, self.folder / name, self.installation, self.master, **config)
        return self.minions[name]

    def start(self, *names: str) -> None:
        """Start the master and these minions, by default all, as far as they do not run, and wait for their answers."""
        wanted = names or tuple(self.minions)
        self.master.start()
        for name in wanted:
            self.minions[name].start()
        self.master.wait_for(*wanted)

    def log_text(self) -> str:
        """Return the last log lines of the daemons, and the last events on the bus."""
        events = "\n".join(f"{event.tag} {event.data!s:.300}" for event in self.master.bus.events()[-40:])
        logs = {
            daemon.folder.name: daemon.log_text().splitlines()[-40:] for daemon in (self.master, *self.minions.values())
        }
        return "\n".join([events, *("== {}\n{}".format(name, "\n".join(lines)) for name, lines in logs.items())])

    def kill(self) -> None:
        for minion in self.minions.values():
            minion.kill()
        self.master.kill()


OPEN: list[Cluster] = []


@contextmanager
def cluster(installation: SaltInstallation, file_roots: Sequence[Path] = (TREE,), **config: Any) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="salt-"))
    here = Cluster(folder, installation, list(file_roots), **config)
    OPEN.append(here)
    try:
        yield here
    finally:
        OPEN.remove(here)
        here.kill()
        shutil.rmtree(folder, ignore_errors=True)
