# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run stages side by side, report each when it ends, and close with the counts."""

from __future__ import annotations

import fcntl
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tools.environment import Environment
from tools.stage import Job, Outcome, Skip, Stage, StageFailed

SHOWN_LOG_LINES = 200
# CI keeps only the end of a long output: the summary names the failed tests again
MAX_FAILURES, MAX_FAILURE_LENGTH = 10, 400
LOG_NOISE = re.compile(
    r"Running sanity test |Installing requirements |Using cached pip |WARNING: (?:Using locale|Reviewing previous) "
)


@dataclass(frozen=True)
class Report:
    """The outcome of one stage, its duration in seconds, and the path of its log."""

    stage: Stage
    outcome: Outcome
    seconds: float
    log: Path

    @property
    def result(self) -> str:
        """One of ok, FAILED and skipped."""
        if self.outcome.failed:
            return "FAILED"
        return "ok" if self.outcome.passed else "skipped"


def run_stages(environment: Environment, stages: Sequence[Stage], side_by_side: int) -> int:
    """Run all stages, also when some fail, and return the exit status of the run.

    Raises:
        KeyboardInterrupt: the run was interrupted. No further stage starts, and the commands of the
            running stages have been sent SIGTERM.
    """
    start = time.monotonic()
    logs = environment.cache / "logs"
    for folder in (logs, environment.cache / "results"):
        folder.mkdir(parents=True, exist_ok=True)
    number = "1 stage" if len(stages) == 1 else f"{len(stages)} stages"
    show(f"{number}, {side_by_side} at a time, on Python {versions(environment)}; logs in {os.path.relpath(logs)}/")
    reports = []
    jobs: list[Job] = []
    interrupted = threading.Event()

    def run(stage: Stage) -> Report:
        return run_stage(environment, stage, logs / f"{stage.name}.log", jobs, interrupted)

    with ThreadPoolExecutor(side_by_side) as pool:
        pending = [pool.submit(run, stage) for stage in stages]
        try:
            for done in as_completed(pending):
                reports.append(done.result())
                show_report(reports[-1], len(reports), len(stages))
        except KeyboardInterrupt:
            interrupted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for job in jobs:
                job.terminate()
            raise
    return show_summary(reports, time.monotonic() - start)


def run_stage(
    environment: Environment, stage: Stage, path: Path, jobs: list[Job], interrupted: threading.Event
) -> Report:
    """Run one stage; an error of any kind is an outcome, and does not end the other stages."""
    start = time.monotonic()
    with path.with_suffix(".lock").open("w") as lock, path.open("a", encoding="utf-8", errors="replace") as log:
        job = Job(environment, log, interrupted)
        jobs.append(job)
        try:
            wait_for_other_runs(job, lock)
            log.truncate(0)
            outcome = stage.run(job)
        except Skip as reason:
            job.write(f"skipped: {reason}")
            outcome = Outcome(skipped=1, notes=(str(reason),))
        except StageFailed as reason:
            job.write(f"failed: {reason}")
            outcome = Outcome(failed=1, failures=(str(reason),))
        except Exception as error:  # pylint: disable=broad-exception-caught
            job.write(traceback.format_exc())
            outcome = Outcome(failed=1, failures=(f"{type(error).__name__}: {error}",))
    return Report(stage, outcome, time.monotonic() - start, path)


def wait_for_other_runs(job: Job, lock: IO[str]) -> None:
    """Wait until no other run works at this stage in this checkout: both would use the same folders."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if job.interrupted.wait(0.5):
                raise StageFailed("interrupted") from None


def show_report(report: Report, number: int, total: int) -> None:
    """Print the line of one stage, and the end of its log if it failed."""
    show(f"[{number:2}/{total}] {report.stage.name:<20} {report.result:<8} {report.seconds:6.1f} s   {counts(report)}")
    if report.outcome.failed:
        lines = [line for line in report.log.read_text(errors="replace").splitlines() if not LOG_NOISE.match(line)]
        for line in lines[-SHOWN_LOG_LINES:]:
            show(f"    | {line}")
        show(f"    | (the whole log: {os.path.relpath(report.log)})")


def counts(report: Report) -> str:
    """Return the counts of a stage, or the reason why it ran no test."""
    outcome = report.outcome
    texts = [
        f"{number} {result}"
        for number, result in ((outcome.failed, "failed"), (outcome.passed, "passed"), (outcome.skipped, "skipped"))
        if number
    ]
    return ", ".join(texts) if outcome.passed or outcome.failed else "; ".join(outcome.notes)


def show_summary(reports: list[Report], seconds: float) -> int:
    """Print which stages passed and failed, and the counts; return the exit status."""
    total = sum((report.outcome for report in reports), Outcome())
    show("")
    for title, result in (("passed", "ok"), ("failed", "FAILED")):
        names = [report.stage.name for report in reports if report.result == result]
        if names:
            show(f"{title}: {', '.join(names)}")
    for report in reports:
        for note in report.outcome.notes:
            show(f"skipped in {report.stage.name}: {note}")
    show(f"{seconds:.0f} s in all")
    show("")
    for line in failures(reports):
        show(line)
    show(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


def failures(reports: Sequence[Report]) -> list[str]:
    """Return a line per failed test: the first of each stage, then the second of each stage, and so on."""
    found = []
    for report in reports:
        if report.outcome.failed:
            texts = report.outcome.failures or log_tail(report.log)
            found += [
                (turn, f"{report.stage.name}: {' '.join(failure.split())}"[:MAX_FAILURE_LENGTH])
                for turn, failure in enumerate(texts)
            ]
    lines = [line for _turn, line in sorted(found, key=lambda item: item[0])]
    more = len(lines) - MAX_FAILURES
    return [*lines[:MAX_FAILURES], f"and {more} more"] if more > 0 else lines


def log_tail(log: Path) -> list[str]:
    """Return the last two lines of a log, for a stage that cannot name its failures."""
    return [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-2:]


def versions(environment: Environment) -> str:
    """Return the versions of Python on this machine as one text."""
    return ", ".join(interpreter.version for interpreter in environment.interpreters)


def show(text: str) -> None:
    """Print a line at once."""
    print(text, file=sys.stdout, flush=True)
