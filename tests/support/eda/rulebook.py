# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A process of ansible-rulebook that runs a rulebook of this collection."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from support.repository import REPOSITORY
from support.wait import wait_until
from tools.repository.collection_tree import copy_tree

COLLECTION = "azure_imds.scheduled_events."
PROGRAM = Path(sys.executable).with_name("ansible-rulebook")
# seconds; long, because only a hanging process takes all of it
READY_TIMEOUT = 300
END_TIMEOUT = 60
_JAVA_HOMES = ("/usr/lib/jvm/default-java", "/usr/lib/jvm/java-17-openjdk-amd64")


def java_home() -> str | None:
    """Return JAVA_HOME for ansible-rulebook, or None if this machine has no Java."""
    given = os.environ.get("JAVA_HOME")
    if given:
        return given
    java = shutil.which("java")
    if java:
        return str(Path(java).resolve().parent.parent)
    return next((home for home in _JAVA_HOMES if Path(home, "bin", "java").exists()), None)


class Rulebook:
    """A running ansible-rulebook, whose log is rulebook.log in the folder.

    ``inventory`` is a file or a folder; ``rulebook`` is a file, or the name of a rulebook of this collection.
    """

    def __init__(
        self,
        folder: Path,
        inventory: Path,
        rulebook: str | Path = COLLECTION + "maintenance",
        variables: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        collections = REPOSITORY / ".cache" / "trees" / "ansible"
        copy_tree(REPOSITORY, collections)
        given = folder / "rulebook-variables.json"
        given.write_text(json.dumps(dict(variables or {})))
        home = java_home()
        self._command = [
            str(PROGRAM),
            *("--rulebook", str(rulebook), "--inventory", str(inventory), "--vars", str(given), "--verbose"),
        ]
        self._environment = {
            **os.environ,
            **({"JAVA_HOME": home} if home else {}),
            "PATH": os.pathsep.join([str(PROGRAM.parent), os.environ["PATH"]]),
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            **(environment or {}),
        }
        self._folder = folder
        self._log = folder / "rulebook.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Rulebook:
        self.start()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process; return when it waits for events."""
        lines = self.log().count("Waiting for events")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(
            lambda: self.log().count("Waiting for events") > lines or self.has_ended(),
            "ansible-rulebook waits for events",
            self.log,
            timeout=READY_TIMEOUT,
        )
        if self.has_ended():
            raise AssertionError(f"ansible-rulebook ended\n{self.log()}")

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def stop(self) -> None:
        """Kill the process and its playbooks, as systemd and containers do it."""
        process, self._process = self._process, None
        if process is None:
            return
        # a playbook has a session of its own; without ansible-rulebook it would hang
        try:
            processes = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            processes = []
        for each in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait(END_TIMEOUT)
        psutil.wait_procs(processes[1:], END_TIMEOUT)

    def log(self) -> str:
        """Return the output of all processes so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def runs(self) -> int:
        """Return how many playbooks have ended."""
        return self.log().count("PLAY RECAP")
