# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The transient unit of one hook run: its name, its properties, its state and its result. Pure.

docs/decisions.md lists the states that systemd reports.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from hook_runner.hooks.one_run import LINES_PER_SECOND, TOO_LONG, RunOrder, RunResult
from hook_runner.records import STAGES, Cause

PREFIX = "azure-scheduled-events-hook-"
DAEMON = "azure-scheduled-events.service"
# Up to this one the numbers of runs are process ids, those of the verb `try`. The daemon begins at the time in
# milliseconds.
LAST_TRIAL = 1 << 22
# the longest name of a hook in that of a unit, which has at most 255 characters
_MAX_NAME = 180
_UNUSUAL = re.compile(r"[^A-Za-z0-9:_.\\-]")
_NAME = re.compile(rf"{PREFIX}(?:{'|'.join(STAGES)})-.+-(\d+)\.service")
# characters that need a backslash between double quotes
_SPECIAL, _ESCAPED = re.compile(r'(["$`\\])'), r"\\\1"
# the first version of systemd that knows a property; the oldest one here is 239
_SINCE = {"Type": 240, "LogRateLimitIntervalSec": 240, "LogRateLimitBurst": 240, "OOMPolicy": 243}
# the exit status that systemd gives a unit whose program it could not execute, systemd.exec(5)
_EXIT_EXEC = 203
# the argument of `systemctl show` for `parse_states`
SHOW = (
    "--property=Id,ActiveState,SubState,Result,MainPID,ExecMainCode,ExecMainStatus,ExecMainStartTimestampMonotonic"
    ",ExecMainExitTimestampMonotonic"
)


def unit_name(stage: str, hook: str, number: int) -> str:
    """Return the name of a run's unit; drop-ins for ``azure-scheduled-events-hook-STAGE-NAME-.service`` apply to it."""
    return f"{PREFIX}{stage}-{_UNUSUAL.sub('_', hook)[:_MAX_NAME]}-{number}.service"


def number_of(name: str) -> int | None:
    """Return the number of a run from the name of its unit; None for another unit."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


def properties(order: RunOrder, name: str, version: int) -> list[str]:
    """Return the assignments for `systemd-run --property`; `version` is that of systemd."""
    found = {
        # systemd-run returns when the program was executed
        "Type": "exec",
        # systemd keeps the result until the daemon has recorded it
        "RemainAfterExit": "yes",
        "RuntimeMaxSec": f"{max(0.001, order.limit):.3f}s",
        "TimeoutStopSec": f"{max(0.001, order.kill_after):.3f}s",
        "KillMode": "control-group",
        # the hook decides what the end of one of its processes means
        "OOMPolicy": "continue",
        "IgnoreSIGPIPE": "no",
        "StandardOutput": "journal",
        "SyslogIdentifier": name[: -len(".service")],
        "LogRateLimitIntervalSec": "1s",
        "LogRateLimitBurst": str(LINES_PER_SECOND),
        # at a shutdown the daemon ends before the hook and begins no other; the network ends after it
        "Before": DAEMON,
        "After": "network.target",
        **order.hook.settings.unit,
    }
    return [f"{key}={value}" for key, value in found.items() if version >= _SINCE.get(key, 0)]


def environment_file(variables: Mapping[str, str]) -> bytes:
    """Return the content of a unit's EnvironmentFile, which other users than root cannot read."""
    quoted = (f'{name}="{_SPECIAL.sub(_ESCAPED, value)}"\n' for name, value in variables.items())
    return "".join(quoted).encode("utf-8", "backslashreplace")


class UnitState(NamedTuple):
    """The state of a unit, by the names of systemd.

    Attributes:
        code: how the main process ended, as `os.CLD_EXITED`; 0 while it runs.
        began, ended: monotonic seconds; 0 if unknown.
    """

    active: str
    sub: str
    result: str
    main_pid: int
    code: int
    status: int
    began: float
    ended: float

    @property
    def exists(self) -> bool:
        """Return True if systemd knows the unit."""
        return self.active != "inactive"

    @property
    def has_ended(self) -> bool:
        """Return True if the result is final. A unit whose processes are being ended has no final one."""
        return (self.active, self.sub) == ("active", "exited") or self.active in ("failed", "inactive")


def parse_states(text: str) -> dict[str, UnitState]:
    """Return the units in the output of `systemctl show` with SHOW, by name. Raises KeyError, ValueError."""
    found = {}
    for block in filter(None, text.strip().split("\n\n")):
        values = dict(line.split("=", 1) for line in block.split("\n"))
        found[values["Id"]] = UnitState(
            values["ActiveState"],
            values["SubState"],
            values["Result"],
            int(values["MainPID"]),
            int(values["ExecMainCode"]),
            int(values["ExecMainStatus"]),
            int(values["ExecMainStartTimestampMonotonic"]) / 1e6,
            int(values["ExecMainExitTimestampMonotonic"]) / 1e6,
        )
    return found


def result_of(state: UnitState, limit: float, output: str) -> RunResult:
    """Return the result of a run from the last state of its unit.

    Success is exit status 0 and only that: systemd also calls it a success if TERM, HUP or INT of another program
    ended the hook. `limit` is that of the run.

    1. Without an end of the main process systemd could not start it; a unit that is not known was stopped.
    2. The same holds for the exit status by which systemd reports that it could not execute the program.
    3. A unit that timed out before the limit was being stopped, and the hook did not end by TERM.
    """
    seconds = max(0.0, state.ended - state.began)
    if not state.exists:
        return RunResult(None, output, seconds, Cause.UNIT_STOPPED, "its unit was stopped; the exit status is unknown")
    if not state.code:
        return RunResult(None, output, seconds, Cause.NOT_STARTED, f"systemd could not start it ({state.result})")
    if (state.code, state.status) == (os.CLD_EXITED, _EXIT_EXEC):
        text = "it, or the interpreter that its first line names, is missing or may not be executed"
        return RunResult(None, output, seconds, Cause.NOT_STARTED, text)
    status = state.status if state.code == os.CLD_EXITED else -state.status
    if status == 0 or state.result != "timeout":
        return RunResult(status, output, seconds)
    if seconds < limit:
        return RunResult(status, output, seconds, Cause.UNIT_STOPPED, "its unit was stopped")
    return RunResult(status, output, seconds, Cause.TIME_LIMIT, TOO_LONG)
