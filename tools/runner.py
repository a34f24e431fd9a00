# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs stages side by side, tells how they went, and closes with the counts."""

from __future__ import annotations

import fcntl
import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tools.environment import Workshop
from tools.stage import Job, Outcome, Skip, Stage, StageFailed

SHOWN_OF_A_FAILED_LOG = 200
# what is kept of a long output is often its end alone, so that has to tell what failed
FAILURES_IN_SUMMARY, LONGEST_FAILURE = 10, 400
NOT_WORTH_SHOWING = re.compile(
    r"Running sanity test |Installing requirements |Using cached pip |WARNING: Using locale |WARNING: Reviewing previous "
)


@dataclass(frozen=True)
class Report:
    stage: Stage
    outcome: Outcome
    seconds: float
    log: Path

    @property
    def word(self) -> str:
        if self.outcome.failed:
            return "FAILED"
        return "ok" if self.outcome.passed else "skipped"


def run_stages(workshop: Workshop, stages: Sequence[Stage], side_by_side: int) -> int:
    """Run all stages, whatever becomes of each; returns the exit status for the whole."""
    start = time.monotonic()
    logs = workshop.cache / "logs"
    for folder in (logs, workshop.cache / "results"):
        folder.mkdir(parents=True, exist_ok=True)
    many = "1 stage" if len(stages) == 1 else f"{len(stages)} stages"
    say(f"{many}, {side_by_side} at a time, on Python {versions(workshop)}; logs in {os.path.relpath(logs)}/")
    reports = []
    jobs: list[Job] = []
    with ThreadPoolExecutor(side_by_side) as pool:
        pending = [pool.submit(run_stage, workshop, stage, logs / f"{stage.name}.log", jobs) for stage in stages]
        try:
            for done in as_completed(pending):
                reports.append(done.result())
                show(reports[-1], len(reports), len(stages))
        except KeyboardInterrupt:
            stop(pending, jobs)
            raise
    return summary(reports, time.monotonic() - start)


def run_stage(workshop: Workshop, stage: Stage, path: Path, jobs: list[Job]) -> Report:
    start = time.monotonic()
    with path.with_suffix(".lock").open("w") as lock, path.open("a", encoding="utf-8", errors="replace") as log:
        job = Job(workshop, log)
        jobs.append(job)
        try:
            wait_for_other_runs(job, lock)
            log.truncate(0)
            outcome = stage.run(job)
        except Skip as reason:
            job.say(f"skipped: {reason}")
            outcome = Outcome(skipped=1, notes=(str(reason),))
        except StageFailed as reason:
            job.say(f"failed: {reason}")
            outcome = Outcome(failed=1, failures=(str(reason),))
        except Exception as error:  # pylint: disable=broad-exception-caught  # one stage's accident must not hide the others' results
            job.say(traceback.format_exc())
            outcome = Outcome(failed=1, failures=(f"{type(error).__name__}: {error}",))
    return Report(stage, outcome, time.monotonic() - start, path)


def wait_for_other_runs(job: Job, lock: IO[str]) -> None:
    """Two runs of one stage in one checkout would work in the same folders."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if job.stopped:
                raise StageFailed("interrupted") from None
            time.sleep(0.5)


def stop(pending: list[Future[Report]], jobs: list[Job]) -> None:
    for future in pending:
        future.cancel()
    for job in jobs:
        job.stop()


def show(report: Report, number: int, total: int) -> None:
    say(f"[{number:2}/{total}] {report.stage.name:<20} {report.word:<8} {report.seconds:6.1f} s   {counts(report)}")
    if report.outcome.failed:
        lines = [
            line for line in report.log.read_text(errors="replace").splitlines() if not NOT_WORTH_SHOWING.match(line)
        ]
        for line in lines[-SHOWN_OF_A_FAILED_LOG:]:
            say(f"    | {line}")
        say(f"    | (all of it: {os.path.relpath(report.log)})")


def counts(report: Report) -> str:
    outcome = report.outcome
    said = [
        f"{number} {word}"
        for number, word in ((outcome.failed, "failed"), (outcome.passed, "passed"), (outcome.skipped, "skipped"))
        if number
    ]
    return ", ".join(said) if outcome.passed or outcome.failed else "; ".join(outcome.notes)


def summary(reports: list[Report], seconds: float) -> int:
    total = sum((report.outcome for report in reports), Outcome())
    say("")
    for title, word in (("passed", "ok"), ("failed", "FAILED")):
        names = [report.stage.name for report in reports if report.word == word]
        if names:
            say(f"{title}: {', '.join(names)}")
    for report in reports:
        for note in report.outcome.notes:
            say(f"skipped in {report.stage.name}: {note}")
    say(f"{seconds:.0f} s in all")
    say("")
    for line in failures(reports):
        say(line)
    say(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


def failures(reports: Sequence[Report]) -> list[str]:
    """The tests that failed, those of all stages by turns, so that none hides another's."""
    found = []
    for report in reports:
        if report.outcome.failed:
            told = report.outcome.failures or last_words(report.log)
            found += [
                (turn, f"{report.stage.name}: {' '.join(failure.split())}"[:LONGEST_FAILURE])
                for turn, failure in enumerate(told)
            ]
    lines = [line for _turn, line in sorted(found, key=lambda item: item[0])]
    more = len(lines) - FAILURES_IN_SUMMARY
    return [*lines[:FAILURES_IN_SUMMARY], f"and {more} more"] if more > 0 else lines


def last_words(log: Path) -> list[str]:
    """The end of a log, for a stage that cannot name what failed."""
    return [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-2:]


def versions(workshop: Workshop) -> str:
    return ", ".join(interpreter.version for interpreter in workshop.interpreters)


def say(text: str) -> None:
    print(text, file=sys.stdout, flush=True)
