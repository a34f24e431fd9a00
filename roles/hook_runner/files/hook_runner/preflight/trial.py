# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `try`: runs one hook with a made-up event, in the same way as the daemon."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import tempfile
import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import WHOLE_DIRECTORY, Hook, discover_hooks
from hook_runner.hooks.one_run import RunResult
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from hook_runner.maintenance.hook_plan import HookPlan, Host, Next
from hook_runner.maintenance.inputs import input_of
from hook_runner.maintenance.record import EventRecord, Maintenance
from hook_runner.records import PREPARE, RECOVER, STAGES

# most seconds between two checks for a signal, or for the end of the hook or of its time
CHECK_INTERVAL = 0.1


class NoSuchHook(LookupError):
    """No hook has that stage and name; the text lists the existing ones."""


class TrialResult(NamedTuple):
    """The result of a trial.

    Attributes:
        event_id: of the made-up event.
        limit: the hook's time limit in seconds.
        result: the result of the run; None if the hook was refused.
        refusal: why it was not run, or "".
    """

    event_id: str
    limit: int
    result: RunResult | None
    refusal: str


def find(settings: Settings, name: str, owners: frozenset[int]) -> Hook:
    """Return the hook STAGE/NAME; without STAGE, of stage prepare. Raises NoSuchHook."""
    stage, slash, name = name.rpartition("/")
    stage = stage if slash else PREPARE
    hooks = discover_hooks(settings.hooks_directory, settings, owners)[0]
    for hook in hooks.get(stage, ()):
        if hook.name in (name, WHOLE_DIRECTORY):
            return hook
    known = ", ".join(f"{each}/{hook.name}" for each in STAGES for hook in hooks[each])
    raise NoSuchHook(f"there is no hook {stage}/{name} in {settings.hooks_directory}; there are: {known or 'none'}")


def invented_event(stage: str, kind: str, notice: float, now: datetime) -> EventRecord:
    """Return an event in which the hooks of a stage run.

    `notice` is the seconds until it may start, for stage prepare.
    """
    scheduled = stage == PREPARE
    name = socket.gethostname()
    event = ScheduledEvent(
        str(uuid.uuid4()).upper(),
        kind,
        "Scheduled" if scheduled else "Started",
        (name,),
        "VirtualMachine",
        now + timedelta(seconds=notice) if scheduled else None,
        "Made up by azure-scheduled-events try.",
        "Platform",
        None,
    )
    record = EventRecord(event, now, kind, event.status, number=1, taken_up_at=now)
    record.gone_at = now if stage == RECOVER else None
    return record


def attempt(settings: Settings, hook: Hook, kind: str, notice: float) -> TrialResult:
    """Run the hook and wait for its end; SIGINT and SIGTERM end it.

    A hook that the daemon refuses is refused here too. `notice` is the seconds until the made-up event may start.
    """
    now = datetime.now(timezone.utc)
    # milliseconds, like the numbers of the daemon's own runs
    number = int(time.time() * 1000)
    record = invented_event(hook.stage, kind, notice, now)
    maintenance = Maintenance(number, now, [record])
    host = Host(settings, {}, settings.resource_name or record.event.resources[0], "")
    run = HookPlan(host, maintenance, {}, now).begin(Next(hook, record), number)
    limit = max(1, int((run.limit - now).total_seconds()))
    if hook.problem is not None:
        return TrialResult(record.event.event_id, limit, None, hook.problem)
    folder = _folder(settings.run_directory)
    try:
        systemd = Systemd()
        runs = HookRuns(
            folder, settings.environment, settings.kill_after, systemd=systemd if systemd.has_units() else None
        )
        given = input_of(run, maintenance, host.own_name, now)
        reasons: list[str] = []
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, lambda _number, _frame: reasons.append("it was ended early"))
        runs.start(number, hook, *given, limit)
        result = _wait(runs, number, reasons)
        runs.remove(number)
        runs.close()
        return TrialResult(record.event.event_id, limit, result, "")
    except OSError as error:
        return TrialResult(record.event.event_id, limit, None, f"it cannot be started: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder(run_directory: str) -> str:
    """Return a new folder, if possible in the run directory: a hook's unit may not allow another one."""
    usual = run_directory if os.access(run_directory, os.W_OK | os.X_OK) else None
    return tempfile.mkdtemp(prefix="try-", dir=usual)


def _wait(runs: HookRuns, number: int, reasons: list[str]) -> RunResult:
    """Wait for the end of the hook; the first of `reasons`, which a signal adds, ends it."""
    waiting = select.poll()
    waiting.register(runs, select.POLLIN)
    while True:
        if reasons:
            runs.stop(number)
        for _number, result in runs.collect_finished():
            return result if result.exit_status == 0 or not reasons else result._replace(error=reasons[0])
        waiting.poll(CHECK_INTERVAL * 1000)


def as_data(hook: Hook, tried: TrialResult) -> dict[str, object]:
    """Return the result as JSON values."""
    result = tried.result
    return {
        "stage": hook.stage,
        "hook": hook.name,
        "event_id": tried.event_id,
        "ok": result is not None and result.exit_status == 0,
        "exit_status": None if result is None else result.exit_status,
        "seconds": None if result is None else result.seconds,
        "limit": tried.limit,
        "output": "" if result is None else result.output,
        "error": tried.refusal if result is None else result.error,
    }


def as_text(hook: Hook, tried: TrialResult) -> str:
    """Return the output of the hook, and the result as one line."""
    name = f"{hook.stage}/{hook.name}"
    if tried.result is None:
        return f"{name}: it is not run, and would count as failed: {tried.refusal}"
    status, error = tried.result.exit_status, tried.result.error
    words = "ok" if status == 0 else "failed"
    if error:
        words += ", " + error
    if status is not None:
        words += f", exit status {status}" if status >= 0 else ", signal %d ended it" % -status
    return f"{tried.result.output}{name}: {words}, after {tried.result.seconds:.1f} s of at most {int(tried.limit)} s"
