# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Short hooks and a run directory; a test must not leave processes or zombies of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hook_runner.hooks.processes import supervisor_pid
from hook_runner.hooks.runs import HookRuns, RunResult
from hook_runner.hooks.spawning import SUPERVISOR
from support.wait import wait_until

LONG = 30.0
SOURCES = [str(Path(SUPERVISOR).parents[2]), str(Path(SUPERVISOR).parents[5] / "plugins" / "module_utils")]


def marked(mark: str) -> list[int]:
    """Return the processes with this text in their environment or command line."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            texts = [Path("/proc", name, part).read_bytes() for part in ("environ", "cmdline")]
        except OSError:
            continue
        if any(mark.encode() in text for text in texts) and int(name) != os.getpid():
            found.append(int(name))
    return found


def zombies() -> list[int]:
    """Return the zombies among the children of this process."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) == os.getpid():
            found.append(int(name))
    return found


class ObservedRuns(HookRuns):
    """The runs of one daemon, with internals for tests."""

    def active(self) -> set[int]:
        """Return the runs that `collect_finished` will return."""
        return {step_id for step_id, run in self._active.items() if not run.orphan}

    def is_idle(self) -> bool:
        """Collect ended runs; return True if nothing runs and all supervisors have been waited for."""
        return self.collect_finished() == [] and not self.active() and not self._children


class RunsHarness:
    """A run directory, short hooks, and a mark that identifies all their processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"mark-{os.getpid()}-{folder.name}"
        self.daemons: list[ObservedRuns] = []
        self.may_leave = False
        self.hook_runs = self.restarted()

    def restarted(self, **changed: Any) -> ObservedRuns:
        given: dict[str, Any] = {"environment": {"MARK": self.mark}, "kill_after": 5.0, **changed}
        self.daemons.append(ObservedRuns(str(self.folder / "run"), **given))
        return self.daemons[-1]

    def hook(self, script: str, name: str = "10-hook") -> str:
        path = self.folder / "hooks.d" / "prepare" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script if script.startswith("#!") else "#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)

    def python(self, script: str) -> str:
        return self.hook(f"#!{os.path.realpath(sys.executable)} -IS\nimport os, sys, time, signal\n{script}")

    def start(
        self,
        path: str,
        step: int = 1,
        input: bytes = b"{}",
        variables: dict[str, str] | None = None,
        limit: float = LONG,
        hook_runs: ObservedRuns | None = None,
    ) -> None:
        (hook_runs or self.hook_runs).start(step, path, input, variables or {}, limit)

    def result(self, step: int = 1, hook_runs: ObservedRuns | None = None) -> RunResult:
        ended = wait_until((hook_runs or self.hook_runs).collect_finished, f"the result of {step}")
        assert [number for number, _result in ended] == [step]
        return ended[0][1]

    def run(self, path: str, **kwargs: Any) -> RunResult:
        self.start(path, **kwargs)
        return self.result()

    def wait_for(self, name: str) -> str:
        return wait_until(lambda: (self.folder / name).read_text() if (self.folder / name).exists() else "", name)

    def supervisor(self, step: int = 1) -> int:
        return wait_until(lambda: supervisor_pid(str(self.folder / "run/runs" / str(step))) or 0, "the supervisor")
