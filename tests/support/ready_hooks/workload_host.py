# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A host with workloads and the ready hooks, which a test runs as the hook runner does."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.hosts.host import Host
from support.repository import REPOSITORY
from support.wait import wait_until

SOURCES = REPOSITORY / "roles" / "ready_hooks" / "files"
LIBRARY = "/usr/local/lib/azure-scheduled-events-hooks"
RECORDS = "/var/lib/azure-scheduled-events/ready-hooks"

Completed = subprocess.CompletedProcess[str]
Options = Mapping[str, Any]
Variables = Mapping[str, str]


class WorkloadHost:
    """One host of the lab."""

    def __init__(self, host: Host) -> None:
        self.host = host
        # without links, as the role installs them: one is to a file of the helper
        shutil.copytree(SOURCES, host.file(LIBRARY), ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, *command: str, check: bool = True, given: str | None = None) -> Completed:
        return self.host.run(command, check=check, given=given)

    def shell(self, script: str) -> str:
        """Run a shell script in the host, and return its standard output."""
        return self.host.run(["sh", "-ec", script]).stdout

    def hook(
        self, use: str, verb: str, options: Options, *, seconds: float = 30.0, event: Variables | None = None
    ) -> Completed:
        """Run a ready hook, and return its result, also of a failure.

        ``use`` is the kind of the hook; ``verb`` is prepare, recover, check, ...; ``options`` are as in YAML.
        ``seconds`` is HOOK_SECONDS. ``event`` has variables without EVENT_, such as TYPE; by default those of a
        reboot.
        """
        return self.host.run(self.hook_command(use, verb, options, seconds=seconds, event=event), check=False)

    def hook_command(
        self, use: str, verb: str, options: Options, *, seconds: float = 30.0, event: Variables | None = None
    ) -> Sequence[str]:
        """Return the command of `hook`."""
        about = {"ID": "75BA7D9B-F708-406F-B6A6-E16F4461F46B", "TYPE": "Reboot", "STAGE": verb, **(event or {})}
        variables = [f"EVENT_{name}={value}" for name, value in about.items()]
        return [
            *("env", f"HOOK_SECONDS={seconds:g}", *variables),
            *(f"{LIBRARY}/{use}", verb, "--json", json.dumps(dict(options))),
        ]

    def start_hook(self, use: str, verb: str, options: Options, seconds: float = 600.0) -> None:
        """Run a ready hook while the test goes on, as the unit `hook`, which `kill` kills."""
        self.start("hook", *self.hook_command(use, verb, options, seconds=seconds))

    def start(self, unit: str, *command: str) -> None:
        """Run a program while the test goes on, as a transient unit, which ends with the host."""
        self.run("systemd-run", "--quiet", "--collect", f"--unit={unit}", *command)

    def kill(self, unit: str) -> None:
        """Kill all processes of the unit at once, and wait until it is gone."""
        self.run("systemctl", "kill", "--signal=KILL", unit, check=False)
        is_active = ("systemctl", "is-active", "--quiet", unit)
        wait_until(lambda: self.run(*is_active, check=False).returncode != 0, f"the end of {unit}")

    def record(self, name: str) -> Any:
        """Return the data of a record, or None without one."""
        file = self.host.file(f"{RECORDS}/{name}.json")
        return json.loads(file.read_text(encoding="utf-8"))["data"] if file.exists() else None

    def write(self, path: str, content: str, mode: int = 0o644) -> Path:
        """Write a file of the host; its folders are created."""
        file = self.host.file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        file.chmod(mode)
        return file
