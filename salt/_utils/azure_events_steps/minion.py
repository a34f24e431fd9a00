# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What preparation and recovery have in common: the configuration, the record, the lock, and the run of a list of steps."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any, Callable, Iterator

from azure_events_watch import state_file
from azure_scheduled_events.session import ImdsSession

from . import lock, record, step_runner
from .answers import BUSY, NO_STEPS, Job
from .configuration import Configuration, Step
from .environment import variables
from .imds_observation import IMDS_TIMEOUT, open_session
from .record import BY_HAND, Reason, Record, RecordFile
from .step_runner import Call, StepResult

log = logging.getLogger(__name__)

# seconds that a job waits for another one of this minion
LOCK_TIMEOUT = 15.0
# what IMDS said longer ago than so many seconds is asked again before something is done
MAX_AGE = 1.0


class Minion:
    """This minion.

    Args:
        cachedir: its folder.
        configuration: the section azure_events.
        call: runs a step that is no command.
        turn: seconds to wait for another job of this minion.
        sleep: waits some seconds.
    """

    def __init__(
        self,
        cachedir: str,
        configuration: Configuration,
        call: Call,
        turn: float = LOCK_TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.configuration = configuration
        self.folder = state_file.folder(cachedir)
        self.file = RecordFile(cachedir)
        self.boot = record.boot_id()
        self._cachedir = cachedir
        self._call = call
        self._turn = turn
        self._sleep = sleep

    def session(self, timeout: float = IMDS_TIMEOUT) -> ImdsSession:
        """A session with IMDS of so many seconds. Raises ImdsError."""
        return open_session(self.configuration, timeout, self._sleep)

    @contextlib.contextmanager
    def locked(self, name: str, job: Job) -> Iterator[lock.Lock | None]:
        """Hold the lock of that name, or get None where another job of this minion holds it for long. Raises OSError."""
        state_file.ensure_directory(self._cachedir)
        with lock.acquire(self.folder, name, self._turn, sleep=self._sleep) as held:
            if held is not None:
                held.note(job.event_id)
            yield held

    def busy(self, job: Job) -> dict[str, Any]:
        """The answer of a job that did not get the lock."""
        other = lock.holder_of(self.folder, lock.PREPARATION)
        return job.answer(
            BUSY, f"another job of this minion has worked on event {other!r} for {self._turn:g} seconds and goes on"
        )

    def readable_record(self, quarantine: bool = False) -> Record | None:
        """The record, or None. Raises OSError.

        A damaged one counts as a preparation by hand that has failed: what it was for is not known,
        so only an operator ends it.
        """
        try:
            return self.file.read()
        except ValueError as error:
            unknown = damaged(str(error))
            if quarantine:
                log.error(
                    "azure_events: %s; it is now %s, and this minion counts as prepared by hand",
                    error,
                    self.file.quarantine(),
                )
                self.file.write(unknown)
            return unknown

    def write_if_possible(self, now: Record) -> None:
        """Replace the record; log where that is not possible."""
        try:
            self.file.write(now)
        except OSError as error:
            log.error("azure_events: the record of the preparation cannot be written: %s", error)

    def run(self, job: Job, steps: tuple[Step, ...], now: Record, held: lock.Lock) -> tuple[list[StepResult], Record]:
        """Run the steps from the first one that has not succeeded in this phase, until one fails.

        Returns the results of all steps, and the record as it is then.
        """
        results = [
            step_runner.not_run(step, step_runner.SKIPPED, "it has succeeded before")
            for step in steps[: now.steps_done]
        ]
        event = job.event.as_dict() if job.event is not None else _known(now, job.key)
        environment = variables(job.stage, job.event_id, event, job.name or self.configuration.resource_name)
        for step in steps[now.steps_done :]:
            result = step_runner.run_step(step, environment, self._call, (held.fd,))
            results.append(result)
            if result.outcome != step_runner.DONE:
                break
            now = now._replace(steps_done=now.steps_done + 1)
            self.write_if_possible(now)
        results += [
            step_runner.not_run(step, step_runner.SKIPPED, "a step before it has failed")
            for step in steps[len(results) :]
        ]
        return results, now


def damaged(text: str) -> Record:
    """What stands for a record that cannot be read."""
    return Record(record.PREPARE_FAILED, "", 0, "", None, text, (Reason(BY_HAND),))


def failure_of(results: list[StepResult]) -> str | None:
    """Why a run of steps has failed, or None."""
    for result in results:
        if result.outcome in (step_runner.FAILED, step_runner.TIMEOUT):
            return f"step {result.name!r}: {result.output or result.outcome}"
    return None


def no_steps(job: Job) -> dict[str, Any]:
    """The answer where the configuration does not say what to do."""
    return job.answer(
        NO_STEPS,
        f"neither pillar nor configuration has azure_events:{job.stage}; set it to a list of steps, which may be empty",
    )


def _known(now: Record, key: str) -> dict[str, Any]:
    """What the record knows of an event that IMDS does not list any more."""
    reason = now.find(key)
    return {} if reason is None else {"event_type": reason.event_type, "resources": list(reason.resources)}
