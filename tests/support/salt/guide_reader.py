# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Writes the files and runs the commands of docs/salt.md in the folders of a cluster.

The first line of a block is a comment that names a file (`# /srv/salt/top.sls`) or the place where
the commands run (`# on the master`). A block of the language console has commands behind `$ `, and
what they print.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from support.recipes.printed import CONTINUED, dialogues, fences, is_shown, replaced
from support.repository import REPOSITORY
from support.salt.cluster import Cluster
from support.salt.guarded_process import GuardedProcess
from support.salt.master import Master
from support.salt.salt_installation import QUIET
from support.salt.salt_process import SaltProcess
from support.simulator.raw_http import send_request
from support.wait import wait_until

GUIDE = REPOSITORY / "docs" / "salt.md"
# the last command of such a block serves until it is ended
OWN_TERMINAL = "in a terminal of its own"
FILE, COMMANDS, CONSOLE = "file", "commands", "console"

_SIMULATOR = "python3 -m imds_simulator "
# text that differs between two runs, in the order of its replacement
_DIFFERS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?", "TIME"),
    (r"\b\d+\.\d+\b", "SECONDS"),
    (r"(?<= )\d+(?= )", "NUMBER"),
    (r" +", " "),
)
_POLL_TIMEOUT = 300.0


class CodeBlock(NamedTuple):
    """One block of the guide.

    Attributes:
        kind: FILE, COMMANDS or CONSOLE.
        place: the path of the file, or where the commands run.
        text: all of it; of commands without the first line.
    """

    section: str
    kind: str
    place: str
    language: str
    text: str


def blocks(guide: Path = GUIDE) -> list[CodeBlock]:
    """Return all blocks of a page in order; raise ValueError for one without a place."""
    found = []
    for part in re.split(r"^##+ ", guide.read_text(encoding="utf-8"), flags=re.MULTILINE):
        found += [_block(part.partition("\n")[0], language, text) for language, text in fences(part)]
    return found


def _block(section: str, language: str, text: str) -> CodeBlock:
    if language == "console":
        return CodeBlock(section, CONSOLE, "on the master", language, text)
    first, _newline, rest = text.partition("\n")
    if not first.startswith("# "):
        raise ValueError(f"{section}: the first line of a block names its file or its place, not {first!r}")
    place = first[2:]
    return (
        CodeBlock(section, FILE, place, language, text)
        if place.startswith("/")
        else CodeBlock(section, COMMANDS, place, language, rest)
    )


def commands_of(block: CodeBlock) -> list[tuple[str, str]]:
    """Return the command lines of a block, continued lines joined, with their printed output."""
    if block.kind == CONSOLE:
        return dialogues(block.text)
    return [(line, "") for line in CONTINUED.sub("", block.text).splitlines() if line.strip()]


class GuideRunner:
    """Executes sections of the guide, block by block, in folders of the cluster instead of the system's.

    Args:
        places: further texts of the guide, and their replacements here.
        masters: those whose names the guide has; another name is the site's own master.
        has_master: whether the minions have one.
    """

    def __init__(
        self,
        cluster: Cluster,
        sections: Sequence[str],
        places: Mapping[str, str] | None = None,
        masters: Mapping[str, Master] | None = None,
        has_master: bool = True,
    ) -> None:
        self._site = cluster
        self._masters = masters or {}
        self._has_master = has_master
        self._blocks = [block for block in blocks() if block.section in sections]
        self._next = 0
        self._stopped: list[SaltProcess] = []
        # where the commands of a place run
        self.folders: dict[str, Path] = {}
        self._servers: list[GuardedProcess] = []
        self.environment = {**os.environ, **QUIET, "PATH": f"{self._shims()}:{os.environ['PATH']}"}
        self.run_folder = cluster.folder / "run"
        self.places = {
            "/srv/": f"{cluster.folder / 'srv'}/",
            "/opt/scheduled_events": str(REPOSITORY),
            "/run/": f"{self.run_folder}/",
            **(places or {}),
        }
        for folder in (cluster.folder / "srv" / "salt", cluster.folder / "srv" / "pillar", self.run_folder):
            folder.mkdir(parents=True, exist_ok=True)

    def go_on(self, last: str = "") -> str:
        """Execute the blocks up to the one with this text, by default all; return the last output."""
        printed = ""
        while self._next < len(self._blocks):
            block = self._blocks[self._next]
            self._next += 1
            printed = self._write(block) if block.kind == FILE else self._run(block)
            if last and last in block.text:
                break
        else:
            assert not last, f"no block that is left holds {last!r}"
        self._start()
        return printed

    def run(self, place: str, command: str, check: bool = True) -> str:
        """Run a command line at a place of the guide, and return its output; ``check``: it has to succeed."""
        verb, *words = shlex.split(command)
        if verb == "cd":
            self.folders[place] = Path(self._here(words[0]))
            return ""
        if verb == "systemctl":
            self._restart(place.removeprefix("on "), *words)
            return ""
        self._start()
        line = ["sh", "-ec", self._here(command)]
        folder = self.folders.get(place, self._site.folder)
        ran = subprocess.run(
            line, cwd=folder, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert not check or ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def close(self) -> None:
        """End the processes in terminals of their own."""
        for server in self._servers:
            server.stop()

    def _write(self, block: CodeBlock) -> str:
        place, _separator, host = block.place.partition(" on ")
        daemons: Sequence[SaltProcess] = (
            list(self._site.minions.values()) if place.startswith("/etc/salt/minion.d/") else [self._master(host)]
        )
        for daemon in daemons:
            path = Path(self._here(place.replace("/etc/salt", str(daemon.folder))))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._here(block.text))
        return ""

    def _run(self, block: CodeBlock) -> str:
        output = ""
        commands = commands_of(block)
        for number, (command, printed) in enumerate(commands, 1):
            if block.place == OWN_TERMINAL and number == len(commands):
                self._serve(block.place, command)
                continue
            output += (
                self._run_until_as_printed(block.place, command, self._here(printed))
                if printed
                else self.run(block.place, command)
            )
        return output

    def _run_until_as_printed(self, place: str, command: str, printed: str) -> str:
        """Repeat a command until its output is that of the guide."""
        ran = ""

        def is_as_printed() -> bool:
            nonlocal ran
            ran = self.run(place, command, check=False)
            return is_shown(replaced(ran, _DIFFERS), replaced(printed, _DIFFERS))

        wait_until(is_as_printed, lambda: f"{command} printed\n{ran}\nand not\n{printed}", timeout=_POLL_TIMEOUT)
        return ran

    def _restart(self, host: str, verb: str, service: str) -> None:
        """Restart a service; the next command waits until it answers."""
        assert verb == "restart", verb
        if service == "salt-api":
            folder = self._master(host).folder
            command = [*self._site.installation.command("salt-api"), "-c", str(folder)]
            self._servers.append(GuardedProcess(command, folder / "api", self.environment))
            return
        daemons: Sequence[SaltProcess] = (
            [self._master(host)] if service == "salt-master" else list(self._site.minions.values())
        )
        for daemon in daemons:
            daemon.kill()
            self._stopped.append(daemon)

    def _start(self) -> None:
        stopped, self._stopped = self._stopped, []
        for daemon in stopped:
            daemon.start()
        if stopped and self._has_master:
            self._site.start()

    def _master(self, host: str) -> Master:
        return self._masters.get(host, self._site.master)

    def _serve(self, place: str, command: str) -> None:
        """Start the simulator on free ports, and note them."""
        assert command.startswith(_SIMULATOR), command
        log = self._site.folder / "simulator"
        line = self._here(command) + " --listen 127.0.0.1:0 --control 127.0.0.1:0"
        words = ["sh", "-ec", f"cd {shlex.quote(str(self.folders[place]))} && exec {line}"]
        self._servers.append(GuardedProcess(words, log, self.environment))
        wait_until(
            lambda: log.exists() and "\ncontrol " in "\n" + log.read_text(), "the address of the simulator's control"
        )
        started = log.read_text()
        endpoints = re.findall(r"^listening (\S+) for", started, re.MULTILINE)
        self.places.update({f"http://127.0.0.1:{port}": endpoint for port, endpoint in enumerate(endpoints, 8169)})
        (control,) = re.findall(r"^control (\S+)", started, re.MULTILINE)
        self.environment["IMDS_SIMULATOR_CONTROL"] = control

    def approvals(self, event_id: str) -> list[str]:
        """Return the VM of each approval of this event at the simulator."""
        lines = send_request(self.environment["IMDS_SIMULATOR_CONTROL"], "/log?what=approval").json["lines"]
        return [entry["vm"] for entry in lines if event_id in entry.get("ids", ())]

    def _here(self, text: str) -> str:
        for there, here in self.places.items():
            text = text.replace(there, here)
        return text

    def _shims(self) -> Path:
        """Return a folder with Salt's commands for this cluster, and a Python that can run the simulator."""
        folder = self._site.folder / "bin"
        folder.mkdir(exist_ok=True)
        first = next(iter(self._site.minions.values()))
        configured = {"salt": self._site.master.folder, "salt-run": self._site.master.folder, "salt-call": first.folder}
        commands = {
            name: [*self._site.installation.command(name), "-c", str(where)] for name, where in configured.items()
        }
        commands["python3"] = [sys.executable]
        commands["pip"] = [sys.executable, "-m", "pip"]
        # the requirements of the package are installed
        commands["salt-pip"] = ["env", "PIP_NO_INDEX=1", str(self._site.installation.python), "-m", "pip"]
        for name, words in commands.items():
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (folder / name).chmod(0o755)
        return folder
