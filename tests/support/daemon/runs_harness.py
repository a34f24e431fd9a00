# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Short hooks and a run directory; a test must not leave processes or zombies of them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hook_runner.config.settings import HookSettings, Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import RunOrder, RunResult, usual_variables
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from support.daemon.hook_scripts import processes_with, write_program
from support.daemon.systemd_programs import SystemdPrograms
from support.wait import wait_until

LONG = 30.0
KILL_AFTER = 5.0


def marked(mark: str) -> list[int]:
    """Return the processes with this text in their environment or command line."""
    return [*processes_with(mark, "environ"), *processes_with(mark, "cmdline")]


class RunsHarness:
    """A run directory, short hooks, and a mark that identifies all their processes.

    Hooks run in units of a stand-in for systemd, or as children where `in_units` is False.
    """

    def __init__(self, folder: Path, in_units: bool) -> None:
        self.folder = folder
        self.mark = f"mark-{os.getpid()}-{folder.name}"
        self.in_units = in_units
        self.systemd = SystemdPrograms(folder)
        self.daemons: list[HookRuns] = []
        self.hook_runs = self.restarted()

    def restarted(self, clock: Callable[[], float] = time.monotonic) -> HookRuns:
        systemd = Systemd(str(self.systemd.folder)) if self.in_units else None
        self.daemons.append(HookRuns(str(self.folder / "run"), clock, systemd))
        return self.daemons[-1]

    def hook(self, script: str, name: str = "10-hook", **settings: Any) -> Hook:
        text = script if script.startswith("#!") else "#!/bin/sh\n" + script
        path = write_program(self.folder / "hooks.d" / "prepare" / name, text)
        return Hook("prepare", name, str(path), HookSettings(**settings), None)

    def python(self, script: str) -> Hook:
        return self.hook(f"#!{os.path.realpath(sys.executable)} -IS\nimport os, sys, time, signal\n{script}")

    def start(
        self,
        hook: Hook,
        number: int = 1,
        input: bytes = b"{}",
        variables: dict[str, str] | None = None,
        limit: float = LONG,
        hook_runs: HookRuns | None = None,
        environment: dict[str, str] | None = None,
        kill_after: float = KILL_AFTER,
    ) -> None:
        hook_runs = hook_runs or self.hook_runs
        settings = Settings(environment={"MARK": self.mark, **(environment or {})})
        variables = {**usual_variables(settings), **(variables or {})}
        order = RunOrder(number, hook, input, variables, limit, kill_after)
        if not hook_runs.start_unit(order):
            hook_runs.start_child(order)

    def result(self, number: int = 1, hook_runs: HookRuns | None = None) -> RunResult:
        ended = wait_until((hook_runs or self.hook_runs).collect_finished, f"the result of {number}")
        assert [each for each, _result in ended] == [number]
        return ended[0][1]

    def run(self, hook: Hook, **kwargs: Any) -> RunResult:
        self.start(hook, **kwargs)
        return self.result(kwargs.get("number", 1))

    def wait_for(self, name: str) -> str:
        return wait_until(lambda: (self.folder / name).read_text() if (self.folder / name).exists() else "", name)

    def kill(self) -> None:
        """Kill all processes of hooks, and wait for their end."""
        for process in marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        wait_until(lambda: not marked(self.mark), "the end of all processes")

    def files(self) -> list[str]:
        """Return the files of runs in the run directory."""
        folder = self.folder / "run" / "runs"
        return sorted(os.listdir(folder)) if folder.exists() else []
