# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Notes what becomes of the hook runs, and what a new process finds of them."""

from __future__ import annotations

from datetime import datetime

from azure_scheduled_events.printable import escape_surrogates
from hook_runner.hooks.one_run import RunResult
from hook_runner.maintenance import reasons
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import HookRun, Maintenance
from hook_runner.records import CUT, INTERRUPTED, LOST, OK, PREPARE, RECOVER, RUNNING, STARTING, STOPPED, TIMEOUT, Cause

# attempts of one recover hook that a maintenance keeps: it may fail for months
MAX_RECOVER_RUNS = 20


class Runs:
    """The runs of the open maintenance; `boot` identifies this boot of the host."""

    def __init__(self, records: OpenRecords, boot: str) -> None:
        self._records = records
        self._boot = boot

    def begun(self, maintenance: Maintenance, run: HookRun) -> None:
        """Add a run that begins now."""
        maintenance.runs.append(run)
        self._records.has_changed = True
        if run.stage == RECOVER:
            same = [each for each in maintenance.runs if (each.stage, each.name) == (RECOVER, run.name)]
            for each in same[1:-MAX_RECOVER_RUNS]:
                maintenance.runs.remove(each)

    def started(self, number: int) -> None:
        """Note that the unit of a run exists, or that it is about to begin as a child."""
        run = self._open(number)
        if run is not None and run.state == STARTING:
            run.state, self._records.has_changed = RUNNING, True

    def ended(self, number: int, result: RunResult, now: datetime) -> None:
        """Note the result of a run. One that the daemon has or may have ended is repeated, unless it succeeded."""
        run, maintenance = self._open(number), self._records.maintenance
        if run is None or maintenance is None:
            return
        run.ended, run.exit_status, run.output = now, result.exit_status, result.output
        run.state, (run.cause, run.reason) = result.state, _why(result)
        if result.state not in (OK, INTERRUPTED) and run.ending is not Cause.NONE:
            run.state = CUT if run.ending is Cause.DEADLINE else STOPPED
            run.cause, run.reason = run.ending, reasons.ENDINGS[run.ending]
        elif result.state != OK and run.may_be_ended:
            run.state, run.reason = INTERRUPTED, "; ".join(filter(None, (run.reason, reasons.MAY_BE_ENDED)))
        elif result.state == TIMEOUT and run.is_cut_short:
            run.state, run.cause, run.reason = CUT, Cause.DEADLINE, reasons.ENDINGS[Cause.DEADLINE]
        reason = f" ({run.reason})" if run.reason else ""
        level = "info" if run.state == OK else "warning"
        record = maintenance.event(run.event)
        self._records.note(now, "hook-ended", f"{run.title} {run.state}{reason}", record, level)

    def lost(self, number: int, now: datetime) -> None:
        """Note that systemd has no unit of a run: it never began, or it was interrupted.

        One that was starting may have begun as a child if the records are behind.
        """
        run, maintenance = self._open(number), self._records.maintenance
        if run is None or maintenance is None:
            return
        if run.state == STARTING and run.boot == self._boot and not run.may_be_ended:
            maintenance.runs.remove(run)
            self._records.note(now, "hook-ended", f"{run.title} had not begun", maintenance.event(run.event))
        else:
            result = RunResult(None, cause=Cause.HOST_SHUTDOWN, error="systemd has no result of it")
            self.ended(number, result, now)

    def adopt(self, run: HookRun, now: datetime) -> None:
        """Take over a run that no record has: the disk was full, and the daemon was killed."""
        maintenance = self._records.opened(now)
        if maintenance.run(run.number) is None:
            run.may_be_ended = True
            maintenance.runs.append(run)
            maintenance.runs.sort(key=lambda each: each.number)
            maintenance.may_lack_events = self._records.has_changed = True
            self._records.number_used(run.number)

    def found_incomplete(self, now: datetime) -> None:
        """Note that the records may lack events and runs, before anything else.

        No preparation or recovery in them counts: the other may have followed. The host recovers also without a record,
        unless documents list an event. The process before may have been ending a run that has not ended in them.
        """
        maintenance = self._records.opened(now)
        maintenance.may_lack_events = self._records.has_changed = True
        for run in maintenance.runs:
            run.may_be_ended = run.is_open
            if run.state == OK and run.stage in (PREPARE, RECOVER):
                run.state = LOST

    def _open(self, number: int) -> HookRun | None:
        """Return the run with this number if it has not ended; several are open if the record lacked runs."""
        maintenance = self._records.maintenance
        run = maintenance.run(number) if maintenance else None
        return run if run is not None and run.is_open else None


def _why(result: RunResult) -> tuple[Cause, str]:
    """Return why a run has its state, and a sentence about it."""
    if result.cause is not Cause.NONE:
        return result.cause, escape_surrogates(result.error)
    status = result.exit_status or 0
    if status < 0:
        return Cause.SIGNAL, f"signal {-status} ended it"
    return (Cause.EXIT, f"exit status {status}") if status else (Cause.NONE, "")
