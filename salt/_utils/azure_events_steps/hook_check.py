# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Runs the check of each ready hook of this minion, and finds records that no step undoes. Changes nothing."""

from __future__ import annotations

import os
import sys
from typing import Any, Iterator

from . import hook_records
from .answers import FAILED, PREPARE, RECOVER, VERSION
from .configuration import Step
from .execution.results import TIMEOUT, output_end
from .minion import Minion
from .ready_hook_steps import USE, arguments

if sys.platform != "win32":
    # on Windows a configuration has no ready hooks
    from .execution.posix_program import run_program

READY = "ready"
OK, WARNING, ERROR = "ok", "warning", "error"
# seconds for the check of one hook
CHECK_TIMEOUT = 30.0


def check(minion: Minion) -> dict[str, Any]:
    """Return the findings of each ready hook of the steps."""
    recovering = {(step.name, step.action) for step in minion.configuration.recover or () if step.kind == USE}
    left = list(hook_records.unclaimed(hook_records.FOLDER, recovering))
    found = _checks(minion)
    if not left:
        return found
    reason = f"preparations that no step undoes: {len(left)}"
    return dict(found, outcome=FAILED, reason=f"{found['reason']}; {reason}", records=left)


def _checks(minion: Minion) -> dict[str, Any]:
    checks = list(_distinct(minion))
    if not checks:
        return answer(READY, "no step is a ready hook")
    problem = minion.hook_files.refresh(urgent=False) if minion.hook_files is not None else ""
    folder = minion.hook_files.find() if minion.hook_files is not None else None
    if folder is None:
        return answer(FAILED, f"the ready hooks are not on this minion: {problem}")
    found = [dict(_checked(step, folder), lists=lists) for step, lists in checks]
    bad = [str(one["name"]) for one in found if one["outcome"] not in (OK, WARNING)]
    if bad:
        return answer(FAILED, f"ready hooks that would fail: {', '.join(bad)}", found)
    late = f"; the files are older than those of the master: {problem}" if problem else ""
    return answer(READY, f"{len(found)} ready hooks are ready{late}", found)


def answer(outcome: str, reason: str, steps: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the answer of the function."""
    return {"version": VERSION, "outcome": outcome, "reason": reason, "steps": steps or [], "records": []}


def _distinct(minion: Minion) -> Iterator[tuple[Step, list[str]]]:
    """Yield each ready hook once, with the lists that have it."""
    listed = {PREPARE: minion.configuration.prepare or (), RECOVER: minion.configuration.recover or ()}
    seen: list[Step] = []
    for steps in listed.values():
        for step in steps:
            if step.kind == USE and step not in seen:
                seen.append(step)
                yield step, [name for name, others in listed.items() if step in others]


def _checked(step: Step, folder: str) -> dict[str, Any]:
    """Run the check of one hook; information is its standard output, problems its standard error."""
    result: dict[str, Any] = {"name": step.name, "use": step.action, "problems": [], "information": []}
    # without HOOK_SECONDS a hook has its own limit, which may be longer
    environment = {**os.environ, "HOOK_SECONDS": f"{CHECK_TIMEOUT:.0f}"}
    command = arguments(sys.executable, folder, step.action, "check", step.kwargs)
    ended = run_program(command, environment, CHECK_TIMEOUT)
    if ended is None:
        return dict(result, outcome=TIMEOUT, problems=[f"the check did not end within {CHECK_TIMEOUT:.0f} seconds"])
    lines = output_end(ended.errors).splitlines()
    outcome = ERROR if ended.code != 0 else WARNING if lines else OK
    return dict(result, outcome=outcome, problems=lines, information=output_end(ended.output).splitlines())
