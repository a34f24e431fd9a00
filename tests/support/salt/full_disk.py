# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A folder of a daemon on a small disk, which a test fills.

The disk is mounted in the daemon's own mount namespace, and ends with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.own_mounts import IN_OWN_MOUNTS
from support.salt.salt_process import SaltProcess

MOUNT = 'mount -t tmpfs -o size="$0",mode=0700 tmpfs "$1" && shift && exec "$@"'


def put_on_small_disk(daemon: SaltProcess, folder: Path, size: str) -> None:
    """Put the folder on a small disk from the daemon's next start."""
    folder.mkdir(parents=True, exist_ok=True)
    daemon.prefix = [*IN_OWN_MOUNTS, "sh", "-c", MOUNT, size, str(folder)]


@contextmanager
def full(daemon: SaltProcess, folder: Path) -> Iterator[None]:
    """Fill the disk below the folder during the block."""
    seen_from_there = Path(f"/proc/{daemon.pids()[0]}/root")
    filler = seen_from_there / folder.relative_to("/") / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        filler.unlink()
