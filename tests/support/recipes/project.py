# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A user's project folder, outside the collection, with files that a document prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from support.hosts.host import Host
from support.recipes.printed import find
from support.repository import REPOSITORY

# seconds; only a command that hangs takes so long
TIMEOUT = 300.0


class CommandRun:
    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self._process, self._output = process, output

    @property
    def text(self) -> str:
        """The output so far, of both streams."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        return self._process.wait(TIMEOUT)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def must_succeed(self) -> CommandRun:
        assert self.wait() == 0, self.text
        return self

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(TIMEOUT)


class Project:
    """A folder for printed files and other files of the user, and command lines that run in it.

    Attributes:
        used: names of the printed blocks and command lines used so far.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.used: set[str] = set()
        self._environment = dict(environment)
        self._running: list[CommandRun] = []
        folder.mkdir(parents=True, exist_ok=True)

    def take_as(self, path: str, document: str, name: str) -> Path:
        """Write a block of the document to this file of the folder, and return its path."""
        self.used.add(name)
        return self.write(path, find(document, name).text)

    def write(self, name: str, text: str) -> Path:
        """Write another file of the user, and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def write_yaml(self, name: str, content: object) -> Path:
        return self.write(name, yaml.safe_dump(content))

    def set(self, variable: str, value: str) -> None:
        """Set a variable of the environment for the command lines that follow."""
        self._environment[variable] = value

    def run(self, command: str) -> CommandRun:
        """Run a command line to its end."""
        ran = self.start(command)
        try:
            ran.wait()
        except subprocess.TimeoutExpired:
            ran.kill()
            raise AssertionError(f"{command} did not end:\n{ran.text}") from None
        return ran

    def start(self, command: str) -> CommandRun:
        self.used.add(command)
        output = self.folder.parent / f"output-{len(self._running)}"
        with output.open("wb") as sink:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        self._running.append(CommandRun(process, output))
        return self._running[-1]

    def close(self) -> None:
        for ran in self._running:
            if ran.runs:
                ran.kill()


def own_environment(home: Path) -> dict[str, str]:
    """Return the environment of a user of Ansible with this home directory, who reaches the hosts of the lab."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
    tests = REPOSITORY / "tests"
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_CONNECTION_PLUGINS": str(tests / "support" / "hosts" / "connection"),
        "PYTHONPATH": str(tests),
    }


def write_inventory(project: Project, group: str, hosts: Mapping[str, Host], folder: str = "") -> None:
    """Write an inventory `hosts.yml` with these hosts in a group."""
    project.write_yaml(f"{folder}hosts.yml", {group: {"hosts": dict.fromkeys(hosts)}})
    write_connections(project, hosts, folder)


def write_connections(project: Project, hosts: Mapping[str, Host], folder: str = "") -> None:
    """Write the connection variables of these hosts beside the user's inventory."""
    for name, host in hosts.items():
        connection = {
            "ansible_connection": "nsenter",
            "ansible_nsenter_keeper": str(host.keeper),
            "ansible_user": "root",
        }
        python = {"ansible_python_interpreter": "/usr/bin/python3", "ansible_pipelining": True}
        project.write_yaml(f"{folder}host_vars/{name}.yml", {**connection, **python})
