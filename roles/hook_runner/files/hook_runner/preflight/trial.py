# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `try`: runs one hook with a made-up event, in the same way as the daemon."""

from __future__ import annotations

import os
import select
import signal
import socket
import tempfile
import uuid
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import RunOrder, RunResult, usual_variables
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from hook_runner.maintenance.hook_plan import HookPlan, Host, Next
from hook_runner.maintenance.inputs import input_of
from hook_runner.maintenance.record import EventRecord, Maintenance
from hook_runner.permissions import location_problem
from hook_runner.records import PREPARE, RECOVER, Cause

# seconds between two checks for a signal, or for the end of the hook's time
CHECK_INTERVAL = 0.1


class Trial(NamedTuple):
    """The result of a trial, with the id of the made-up event, and the hook's time limit in seconds."""

    hook: Hook
    event_id: str
    limit: int
    result: RunResult

    def as_data(self) -> dict[str, object]:
        """Return the result as JSON values."""
        hook, result = self.hook, self.result
        about = {"stage": hook.stage, "hook": hook.name, "event_id": self.event_id, "limit": self.limit}
        return {**about, "ok": result.exit_status == 0, **result._asdict()}

    def as_text(self) -> str:
        """Return the output of the hook, and the result as one line."""
        status, output, seconds, _cause, error = self.result
        words = ["ok" if status == 0 else "failed", error]
        if status is not None:
            words.append(f"exit status {status}" if status >= 0 else f"signal {-status} ended it")
        result = f"{', '.join(filter(None, words))}, after {seconds:.1f} s of at most {self.limit} s"
        return "\n".join([*output.splitlines(), f"{self.hook.stage}/{self.hook.name}: {result}"])


def attempt(settings: Settings, hook: Hook, kind: str, notice: float) -> Trial:
    """Run the hook and wait for its end; SIGINT and SIGTERM end it.

    A hook that the daemon refuses is refused here too. `notice` is the seconds until the made-up event may start.
    """
    now = datetime.now(timezone.utc)
    number = os.getpid()
    record = _invented_event(hook.stage, kind, notice, now)
    maintenance = Maintenance(number, now, [record])
    host = Host(settings, {}, settings.resource_name or record.event.resources[0], "")
    run = HookPlan(host, maintenance, {}, now).begin(Next(hook, record), number)
    limit = max(1, int((run.limit - now).total_seconds()))
    if hook.problem is not None:
        result = RunResult(None, cause=Cause.REFUSED, error=hook.problem)
    else:
        try:
            result = _run(settings, hook, number, *input_of(run, maintenance, host.own_name, now), limit)
        except OSError as error:
            result = RunResult(None, cause=Cause.NOT_STARTED, error=f"it cannot be started: {error}")
    return Trial(hook, record.event.event_id, limit, result)


def _invented_event(stage: str, kind: str, notice: float, now: datetime) -> EventRecord:
    """Return an event in which the hooks of a stage run."""
    scheduled = stage == PREPARE
    event = ScheduledEvent(
        str(uuid.uuid4()).upper(),
        kind,
        "Scheduled" if scheduled else "Started",
        (socket.gethostname(),),
        "VirtualMachine",
        now + timedelta(seconds=notice) if scheduled else None,
        "Made up by azure-scheduled-events try.",
        "Platform",
        None,
    )
    record = EventRecord(event, now, kind, event.status, number=1, taken_up_at=now)
    record.gone_at = now if stage == RECOVER else None
    return record


def _run(settings: Settings, hook: Hook, number: int, input: bytes, variables: dict[str, str], limit: int) -> RunResult:
    """Run the hook; the first signal ends it. Raises OSError if it cannot be started."""
    systemd = Systemd()
    ended_early: list[int] = []
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda signal_number, _frame: ended_early.append(signal_number))
    # if possible in the run directory: a hook's unit may not allow another one
    usual = settings.run_directory
    is_usable = os.access(usual, os.W_OK | os.X_OK) and location_problem(usual) is None
    with tempfile.TemporaryDirectory(prefix="try-", dir=usual if is_usable else None) as folder:
        runs = HookRuns(folder, systemd=systemd if systemd.has_units() else None)
        variables = {**usual_variables(settings), **variables}
        order = RunOrder(number, hook, input, variables, limit, settings.kill_after)
        if not runs.start_unit(order):
            runs.start_child(order)
        finished = runs.collect_finished()
        while not finished:
            select.select([runs], [], [], CHECK_INTERVAL)
            if ended_early:
                runs.stop(number, settings.kill_after)
            finished = runs.collect_finished()
        runs.remove_collected()
        runs.close(settings.kill_after)
    ((_number, result),) = finished
    return result._replace(error="it was ended early") if ended_early and result.exit_status != 0 else result
