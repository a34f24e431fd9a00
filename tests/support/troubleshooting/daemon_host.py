# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A VM with the hook runner, whose files are below one folder, for the commands of docs/troubleshooting.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from support.repository import REPOSITORY
from support.wait import wait_until

TIMEOUT = 120.0
PYTHONPATH = os.pathsep.join(str(REPOSITORY / part) for part in ("plugins/module_utils", "roles/hook_runner/files"))
PROGRAM = '#!/bin/sh\nverb=$1\nshift\nexec {python} -m hook_runner "$verb" --config {config} "$@"\n'
RELOADED = "configuration and hooks are read again"
# systemd does these; here the test does them, with the check of the unit file
RELOAD, START, RESTART = (f"systemctl {verb} azure-scheduled-events" for verb in ("reload", "start", "restart"))
CHECK = "azure-scheduled-events check"
# `check` looks for other handlers among the processes of the host: here it sees none of the other tests
OWN_PROCESSES = ("unshare", "--pid", "--fork", "--mount-proc")


class DaemonHost:
    """One VM.

    Attributes:
        folder: everything of this VM.
        config: the keys of the configuration.
        prefix: a command that starts the daemon, such as one that mounts a small disk.
        python_path: where Python finds the daemon and its libraries.
        page_config: a configuration of the page, which has precedence over these keys.
        places: text of the page -> text for this VM.
    """

    def __init__(self, folder: Path, endpoint: str, python: str = sys.executable) -> None:
        folder.chmod(0o755)
        self.folder = folder
        self.places = {
            "/etc/azure-scheduled-events": str(folder / "etc"),
            "/var/lib/azure-scheduled-events": str(folder / "lib"),
            "/run/azure-scheduled-events": str(folder / "run"),
            "/usr/local/bin": str(folder / "bin"),
            "/srv": str(folder / "srv"),
            "http://169.254.169.254": endpoint,
            "/usr/bin/python3": python,
        }
        self.config: dict[str, Any] = {"policy": "documented"}
        self.page_config = ""
        self._own = {
            "endpoint": endpoint,
            "interval": 0.2,
            "hooks_directory": str(folder / "etc" / "hooks.d"),
            "state_directory": str(folder / "lib" / "hook-runner"),
            "run_directory": str(folder / "run"),
            "environment": {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
        }
        self.prefix: list[str] = []
        self.python_path = PYTHONPATH
        self._log = folder / "log"
        self._daemon: subprocess.Popen[bytes] | None = None
        for name in ("etc/hooks.d/prepare", "etc/hooks.d/recover", "lib", "bin", "srv"):
            self._make(folder / name)
        program = PROGRAM.format(python=python, config=folder / "etc" / "config.yml")
        self._write(folder / "bin" / "azure-scheduled-events", program, 0o755)

    def hook(self, name: str, *lines: str, mode: int = 0o755) -> None:
        """Write the hook STAGE/NAME, a shell script."""
        text = "".join(f"{line}\n" for line in ("#!/bin/sh", *lines))
        self.write(f"/etc/azure-scheduled-events/hooks.d/{name}", text, mode)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file at a path of the page."""
        self._write(Path(self.moved(path)), self.moved(text), mode)

    def write_config(self, text: str = "", **keys: str) -> None:
        """Write the configuration: this text, that of the page, or the keys, new or old; then the keys of the test."""
        self.config = keys or self.config
        # the text of the page comes first, so that the numbers of lines in messages are those of the page
        shown = self.moved(text or self.page_config) or yaml.safe_dump(self.config, sort_keys=False, width=1000)
        keys = yaml.safe_load(shown)
        own = {key: value for key, value in self._own.items() if key not in keys}
        self._write(self.folder / "etc" / "config.yml", shown + yaml.safe_dump(own), 0o644)

    def start(self, until: str = "IMDS answers") -> None:
        """Write the configuration, start the daemon, and wait until it has logged a text."""
        self.write_config()
        self._start()
        self.wait(lambda: until in self.log())

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.send_signal(signal.SIGTERM)
            self._daemon.wait(TIMEOUT)
            self._daemon = None

    def run(self, command: str, *prefix: str, user: int | None = None) -> tuple[int, str]:
        """Run a command of the page; return its exit code, and its output with the paths of the page.

        ``prefix`` is a command that runs the shell, such as one that mounts something. ``user`` is the id of the
        user and of its group; by default that of the test.
        """
        if command in (RELOAD, START, RESTART):
            return self._service(command)
        if CHECK in command and user is None and os.geteuid() == 0:
            prefix = (*OWN_PROCESSES, *prefix)
        ran = subprocess.run(
            [*prefix, "/bin/sh", "-c", self.moved(command)],
            env=self._environment(),
            cwd=self.folder / "srv",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        return ran.returncode, self.shown(ran.stdout + ran.stderr)

    def pid(self) -> int:
        assert self._daemon is not None
        return self._daemon.pid

    def status(self) -> dict[str, Any]:
        """Return the JSON of `status`."""
        data: dict[str, Any] = json.loads(self.run("azure-scheduled-events status --json")[1])
        return data

    def event(self, event_id: str) -> dict[str, Any]:
        """Return one event of `status`; empty if the daemon does not know it."""
        return next((event for event in self.status().get("events", []) if event["event_id"] == event_id), {})

    def maintenance(self) -> dict[str, Any] | None:
        """Return the open maintenance of `status`."""
        found: dict[str, Any] | None = self.status()["maintenance"]
        return found

    def wait_for(self, event_id: str, **members: Any) -> str:
        """Wait until an event of `status` has these members; return its id."""
        self.wait(lambda: {**self.event(event_id), **members} == (self.event(event_id) or None))
        return event_id

    def wait(self, condition: Callable[[], object]) -> None:
        wait_until(condition, explain=lambda: self.log() + self.run("azure-scheduled-events status")[1], pause=0.05)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def moved(self, text: str) -> str:
        """Replace the paths of the page by those of this VM."""
        for theirs, ours in self.places.items():
            text = text.replace(theirs, ours)
        return text

    def shown(self, text: str) -> str:
        """Replace the paths of this VM by those of the page."""
        for theirs, ours in self.places.items():
            text = text.replace(ours, theirs)
        return text

    def _service(self, command: str) -> tuple[int, str]:
        if command == RELOAD:
            assert self._daemon is not None
            # as ExecReload of the unit file
            code, text = self.run("azure-scheduled-events check --offline")
            if code:
                return code, text
            known = self.log().count(RELOADED)
            self._daemon.send_signal(signal.SIGHUP)
            self.wait(lambda: self.log().count(RELOADED) > known)
            return 0, ""
        if command == RESTART:
            self.stop()
        before = self.log().count("IMDS answers")
        self._start()
        self.wait(lambda: self.log().count("IMDS answers") > before)
        return 0, ""

    def _start(self) -> None:
        with open(self._log, "ab") as log:
            self._daemon = subprocess.Popen(
                [
                    *self.prefix,
                    sys.executable,
                    "-m",
                    "hook_runner",
                    "run",
                    "--config",
                    self.folder / "etc" / "config.yml",
                ],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": self.python_path,
            "LC_ALL": "C.UTF-8",
        }

    def _write(self, path: Path, text: str, mode: int) -> None:
        self._make(path.parent)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    @staticmethod
    def _make(folder: Path) -> None:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
