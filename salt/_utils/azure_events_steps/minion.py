# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Configuration, record, lock and run of steps, for preparation, recovery and approval."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from typing import Any, Callable, Iterator, Sequence

from azure_events_watch import state_file
from azure_scheduled_events.boot import boot_id
from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.hook_input import HookInput, step_seconds
from azure_scheduled_events.outcome import UNKNOWN
from azure_scheduled_events.session import ImdsSession

from . import lock, record
from .answers import BUSY, NO_STEPS, PREPARE, RECOVER, Job
from .configuration import COMMAND, Configuration, Step
from .execution.results import DONE, FAILED, SKIPPED, TIMEOUT, Call, StepResult, not_run
from .execution.step_runner import run_step
from .hook_files import HookFiles
from .imds_observation import IMDS_TIMEOUT, open_session
from .ready_hook_steps import USE, arguments
from .record import BY_HAND, Reason, Record, RecordFile

log = logging.getLogger(__name__)

# seconds that a job waits for another job of this minion
LOCK_TIMEOUT = 15.0
# seconds after which IMDS is read again before a job acts
MAX_AGE = 1.0


class Minion:
    """This minion.

    ``call`` runs a step that is a function or an SLS file. ``hook_files`` is None for a minion without
    ready hooks. ``lock_timeout`` is the number of seconds to wait for another job of this minion.
    """

    def __init__(
        self,
        cachedir: str,
        configuration: Configuration,
        call: Call,
        hook_files: HookFiles | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.configuration = configuration
        self.hook_files = hook_files
        self.folder = state_file.folder(cachedir)
        self.file = RecordFile(cachedir)
        self.boot = boot_id()
        self._cachedir = cachedir
        self._call = call
        self._lock_timeout = lock_timeout
        self._clock = clock
        self._sleep = sleep

    def session(self, timeout: float = IMDS_TIMEOUT) -> ImdsSession:
        """Return a session with IMDS that may last ``timeout`` seconds."""
        return open_session(self.configuration, timeout, self._clock, self._sleep)

    @contextlib.contextmanager
    def locked(self, name: str, job: Job) -> Iterator[lock.Lock | None]:
        """Hold the lock of that name, or yield None if another job of this minion keeps it."""
        state_file.ensure_directory(self._cachedir)
        with lock.acquire(self.folder, name, self._lock_timeout, sleep=self._sleep) as held:
            if held is not None:
                held.note(job.event_id)
            yield held

    def busy(self, job: Job) -> dict[str, Any]:
        """Return the answer of a job that did not get the lock."""
        other = lock.holder_of(self.folder, lock.PREPARATION)
        return job.answer(
            BUSY,
            f"another job of this minion has worked on event {other!r} for {self._lock_timeout:g} seconds and goes on",
        )

    def readable_record(self, quarantine: bool = False) -> Record | None:
        """Return the record, or None; with ``quarantine``, replace a damaged one.

        A damaged record counts as a failed preparation by hand. Its events are unknown; therefore
        only an operator ends it.

        Raises:
            OSError: the record cannot be read now, or cannot be replaced.
        """
        try:
            return self.file.read()
        except ValueError as error:
            unknown = damaged(str(error))
            if quarantine:
                log.error(
                    "azure_events: %s; it is now %s, and this minion counts as prepared by hand",
                    error,
                    self.file.quarantine(unknown),
                )
            return unknown

    def write_if_possible(self, now: Record) -> None:
        """Replace the record, or log why it cannot be written."""
        try:
            self.file.write(now)
        except OSError as error:
            log.error("azure_events: the record of the preparation cannot be written: %s", error)

    def write_or_distrust(self, now: Record) -> None:
        """Replace the record, or have it no longer count as a preparation, or log why neither is possible."""
        try:
            self.file.write(now)
        except OSError as error:
            log.error("azure_events: the record of the recovery cannot be written: %s", error)
            try:
                self.file.distrust()
            except OSError as problem:
                log.error("azure_events: the record of the preparation cannot be renamed: %s", problem)

    def note_gone(self, events: Sequence[ScheduledEvent]) -> None:
        """Note that the record no longer has these events, which are over, or log why that cannot be noted."""
        if not events:
            return
        try:
            self.file.add_gone(events)
        except OSError as error:
            log.error("azure_events: the events that are over cannot be noted: %s", error)

    def run(self, job: Job, steps: tuple[Step, ...], now: Record, held: lock.Lock) -> tuple[list[StepResult], Record]:
        """Run the steps until one fails, except those that have succeeded in this phase before.

        Return the results of all steps, and the record afterwards.
        """
        results = [not_run(step, SKIPPED, "it has succeeded before") for step in steps[: now.steps_done]]
        event = job.event.as_dict() if job.event is not None else _known(now, job.key)
        about = HookInput(
            {**event, "event_id": job.event_id},
            job.stage,
            job.name or self.configuration.resource_name or "",
            # a minion does not keep whether the event was Started
            UNKNOWN if job.stage == RECOVER and not job.by_hand else "",
        )
        left = steps[now.steps_done :]
        folder, problem = self._hook_folder(job, left)
        for step in left:
            if step.kind == USE and folder is None:
                result = not_run(step, FAILED, problem)
            else:
                seconds_left = job.seconds_left()
                limit = step_seconds(step.timeout, seconds_left if job.has_deadline() else None)
                given = about._replace(seconds_left=seconds_left, hook_seconds=limit).variables()
                limited = _runnable(step, job.stage, folder)._replace(timeout=limit)
                ran = run_step(limited, given, self._call, (held.fd,))
                result = ran._replace(kind=step.kind)
            results.append(result)
            if result.outcome != DONE:
                break
            now = now._replace(steps_done=now.steps_done + 1)
            self.write_if_possible(now)
        results += [not_run(step, SKIPPED, "a step before it has failed") for step in steps[len(results) :]]
        return results, now

    def _hook_folder(self, job: Job, steps: tuple[Step, ...]) -> tuple[str | None, str]:
        """Return the folder of the ready hooks if a step needs it, or None and the reason.

        A preparation refreshes the files. A recovery uses those of the preparation; it must not wait
        for a master.
        """
        if self.hook_files is None or not any(step.kind == USE for step in steps):
            return None, "this system has no ready hooks"
        problem = ""
        if job.stage == PREPARE or self.hook_files.find() is None:
            problem = self.hook_files.refresh()
            if problem:
                log.warning("azure_events: the files of the ready hooks were not refreshed: %s", problem)
        return self.hook_files.find(), f"the ready hooks are not on this minion: {problem}"


def _runnable(step: Step, stage: str, folder: str | None) -> Step:
    """Return the command of a ready hook, or the step itself."""
    if step.kind != USE or folder is None:
        return step
    return step._replace(kind=COMMAND, action=arguments(sys.executable, folder, step.action, stage, step.kwargs))


def damaged(text: str) -> Record:
    """Return the record that replaces a damaged one; ``text`` names the damage."""
    return Record(record.PREPARE_FAILED, "", 0, "", None, text, (Reason(BY_HAND),))


def failure_of(results: list[StepResult]) -> str | None:
    """Return why a run of steps has failed, or None."""
    for result in results:
        if result.outcome in (FAILED, TIMEOUT):
            return f"step {result.name!r}: {result.output or result.outcome}"
    return None


def no_steps(job: Job) -> dict[str, Any]:
    """Return the answer for a configuration without the steps of the job."""
    return job.answer(
        NO_STEPS,
        f"neither pillar nor configuration has azure_events:{job.stage} or azure_events:ready_hooks; "
        "set one to a list, which may be empty",
    )


def _known(now: Record, key: str) -> dict[str, Any]:
    """Return the recorded fields of an event that IMDS no longer lists."""
    reason = now.find(key)
    return {} if reason is None else {"event_type": reason.event_type, "resources": list(reason.resources)}
