# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs ready hooks in the process of the test, with scripts as the programs of the workload."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from ready_hooks import hooks
from ready_hooks.core.arguments import from_mapping
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.event import from_environment
from ready_hooks.core.hook import ReadyHook, Run
from ready_hooks.core.record import Record
from support.ready_hooks.clock import Clock


class HookHost:
    """A host in a folder.

    Attributes:
        folder: has the scripts, the records and what a test adds.
        clock: of the hooks.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.clock = folder, Clock()
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setenv("FOLDER", str(folder))

    def program(self, name: str, script: str) -> None:
        """Make a program of a script of the shell, in which $FOLDER is the folder."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def record(self, use: str) -> Record:
        """Return the record of the hook of this kind."""
        return Record(str(self.folder / "records"), use, use)

    def hook(self, use: str, seconds: float = 60.0, event_type: str = "Reboot", **options: Any) -> ReadyHook:
        """Return a hook of this kind for one run, which may last so many seconds by the clock."""
        kind = hooks.load(use)
        deadline = Deadline(seconds, self.clock, self.clock.sleep)
        event = from_environment({"EVENT_ID": "E1", "EVENT_TYPE": event_type})
        return kind(Run(use, from_mapping(kind.options, options), event, deadline, self.record(use), dry_run=False))

    def server(self, **options: Any) -> Run:
        """Return a run of the hook postgresql for a server in the folder, which does not run."""
        user = pwd.getpwuid(os.geteuid()).pw_name
        return self.hook("postgresql", user=user, data_directory=str(self.folder), unit="db.service", **options).run
