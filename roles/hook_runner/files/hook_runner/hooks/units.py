# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts supervisors in transient units of systemd, one for each hook run.

When a unit ends, systemd ends all processes that the hook has started.

The unit gets the run's lock as its standard input and the pipe of requests as its standard output.
systemd keeps both from the moment of the call until the unit has ended; therefore a run is locked
before the unit begins, even if the daemon ends.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import NamedTuple

from hook_runner.config.hook_limits import LIMITS
from hook_runner.hooks import systemd_manager
from hook_runner.hooks.processes import UNITS
from hook_runner.hooks.spawning import SUPERVISOR, opened
from hook_runner.hooks.systemd_manager import Property

IDENTIFIER = "azure-scheduled-events"
# seconds that a supervisor needs after the hook's own times, to end remaining processes and to write the result
SUPERVISOR_TIMEOUT = 4.0
# seconds after which systemd ends a unit whose supervisor hangs
SUPERVISOR_MARGIN = 30.0
_UNUSUAL = re.compile(r"[^A-Za-z0-9:_.\\-]")
_MAX_NAME = 100


class UnitRequest(NamedTuple):
    """The values of a unit for one run.

    Attributes:
        stage, hook: the hook; they become a part of the unit's name.
        step_id: number of the run.
        event_id: of the event, for the unit's description.
        limit, kill_after: seconds.
        limits: properties of LIMITS with their values.
        log: descriptor that gets the hook's output; None for the journal.
    """

    stage: str
    hook: str
    step_id: int
    event_id: str
    limit: float
    kill_after: float
    limits: Mapping[str, int]
    log: int | None


def unit_name(stage: str, hook: str, step_id: int) -> str:
    """Return the name of a run's unit; drop-ins for ``azure-scheduled-events-hook-STAGE-NAME-.service`` apply to it."""
    return f"{UNITS}{stage}-{_UNUSUAL.sub('_', hook)[:_MAX_NAME]}-{step_id}.service"


def start_unit(folder: str, wanted: UnitRequest) -> None:
    """Start the supervisor of the run in this folder. Raises OSError if it does not start."""
    with opened(folder) as (lock, requests):
        descriptors = (lock, requests) if wanted.log is None else (lock, requests, wanted.log)
        try:
            systemd_manager.start_transient(
                unit_name(wanted.stage, wanted.hook, wanted.step_id), properties(folder, wanted), descriptors
            )
        except systemd_manager.NoAnswer:
            pass  # it may still begin; the lock shows whether it has


def properties(folder: str, wanted: UnitRequest) -> list[Property]:
    """Return the properties of a run's unit; its first two descriptors are the lock and the pipe of requests."""
    # systemd expands variables in arguments
    command = [word.replace("$", "$$") for word in (sys.executable, "-I", "-S", SUPERVISOR, folder, "unit")]
    stop = wanted.kill_after + SUPERVISOR_TIMEOUT
    found = [
        Property("Description", "s", f"Hook {wanted.stage}/{wanted.hook} for event {wanted.event_id[:_MAX_NAME]}"),
        Property("Type", "s", "simple"),
        Property("ExecStart", "a(sasb)", [(sys.executable, command, False)]),
        Property("StandardInputFileDescriptor", "h", 0),
        Property("StandardOutputFileDescriptor", "h", 1),
        # if both lead to the journal, systemd makes standard error a copy of standard output, which
        # is the pipe here
        Property("StandardOutput", "s", "null"),
        Property("StandardError", "s", "journal")
        if wanted.log is None
        else Property("StandardErrorFileDescriptor", "h", 2),
        # for lines of the supervisor itself; it sends the hook's lines with their own fields, because
        # systemd 247 to 257 leave a file in /run for each unit that has LogExtraFields
        Property("SyslogIdentifier", "s", IDENTIFIER),
        # systemd forgets the unit also when it failed
        Property("CollectMode", "s", "inactive-or-failed"),
        # TERM for the supervisor only, which ends the hook; remaining processes are killed afterwards
        Property("KillMode", "s", "mixed"),
        Property("TimeoutStopUSec", "t", _microseconds(stop)),
        Property("RuntimeMaxUSec", "t", _microseconds(wanted.limit + stop + SUPERVISOR_MARGIN)),
        # the hook decides by itself what the end of one of its processes means
        Property("OOMPolicy", "s", "continue"),
        # at a shutdown the daemon ends before the hook and begins no other; the network ends after it
        Property("Before", "as", [IDENTIFIER + ".service"]),
        Property("After", "as", ["network.target"]),
    ]
    return found + [Property(*LIMITS[name], value) for name, value in wanted.limits.items()]


def _microseconds(seconds: float) -> int:
    return int(seconds * 1e6)
