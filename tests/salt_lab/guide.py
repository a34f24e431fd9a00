# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What docs/salt.md tells its reader to write and to run, and a reader who does so in a folder of a site."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from salt_lab.installed import QUIET
from salt_lab.site import REPOSITORY, Site

GUIDE = REPOSITORY / "docs" / "salt.md"
BLOCK = re.compile(r"(?:^<!-- (file|run): (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    """``mark`` is file or run; ``place`` is where it belongs, as the guide says."""

    section: str
    mark: str
    place: str
    language: str
    text: str


def snippets(guide: Path = GUIDE) -> list[Snippet]:
    found = []
    for part in re.split(r"^## ", guide.read_text(encoding="utf-8"), flags=re.MULTILINE):
        found += [Snippet(part.partition("\n")[0], *match) for match in BLOCK.findall(part)]
    return found


class Reader:
    """Follows the guide with one minion, in folders of the site in the place of the system's."""

    def __init__(self, site: Site, minion: str, endpoint: str) -> None:
        self._site = site
        self.leaving = site.folder / "leaving"
        self._places = {
            "/etc/salt/master.d": str(site.master.folder / "master.d"),
            "/etc/salt/minion.d": str(site.folder / minion / "minion.d"),
            "/srv": str(site.folder / "srv"),
            "/opt/scheduled_events": str(REPOSITORY),
            "/run/leaving": str(self.leaving),
            "http://127.0.0.1:8169": endpoint,
        }

    def write(self, section: str) -> None:
        """All files of a section."""
        for snippet in snippets():
            if (snippet.section, snippet.mark) == (section, "file"):
                path = Path(self._here(snippet.place))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._here(snippet.text))

    def run(self, section: str) -> str:
        """All commands of a section that are for the master, as a shell runs them; returns what they printed."""
        commands = [snippet.text for snippet in snippets() if (snippet.section, snippet.mark, snippet.place) == (section, "run", "on the master")]
        assert commands, "the section %s has no commands" % section
        environment = {**os.environ, **QUIET, "PATH": "%s:%s" % (self._commands(), os.environ["PATH"])}
        line = ["sh", "-ec", "\n".join(commands)]
        ran = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def _here(self, text: str) -> str:
        for there, here in self._places.items():
            text = text.replace(there, here)
        return text

    def _commands(self) -> Path:
        """Salt's commands, for this master."""
        folder = self._site.folder / "bin"
        folder.mkdir(exist_ok=True)
        for name in ("salt", "salt-run"):
            words = [*self._site.installed.command(name), "-c", str(self._site.master.folder)]
            (folder / name).write_text('#!/bin/sh\nexec %s "$@"\n' % " ".join(words))
            (folder / name).chmod(0o755)
        return folder
