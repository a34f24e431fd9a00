# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs a lab with many seeds side by side, keeps the files of those that fail, and sums up the observations."""

from __future__ import annotations

import argparse
import collections
import itertools
import math
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from azure_scheduled_events.options import parse_seconds

# seconds after which no run starts, when neither seeds nor a time are given
USUAL_LIMIT = 600.0
# (kind, options) of faults of IMDS, which the plans draw
IMDS_FAULTS: tuple[tuple[str, dict[str, str]], ...] = (
    *((kind, {}) for kind in ("server-error", "gone", "not-found", "empty", "reset", "hang")),
    *((kind, {}) for kind in ("truncated", "html", "events-null", "cut-json")),
    *((kind, {"retry_after": "1s"}) for kind in ("unavailable", "too-many-requests")),
    *((kind, {"method": "POST"}) for kind in ("lost-answer", "lost-request", "server-error")),
)


class Violation(NamedTuple):
    """The name of the rule, and the observation."""

    rule: str
    text: str

    def __str__(self) -> str:
        return "{}: {}".format(*self)


class Outcome(NamedTuple):
    """The outcome of a seed; ``lines``: its plan and course; ``counts``: the number of observations by name."""

    seed: int
    violations: Sequence[Violation]
    lines: Sequence[str]
    counts: dict[str, int]

    @property
    def text(self) -> str:
        return "\n".join([f"seed {self.seed}", *self.lines, "violations:", *map(str, self.violations)])


class Approval(NamedTuple):
    """An approval that IMDS accepted from a VM."""

    at: float
    vm: str
    event_id: str


# runs a seed in an empty folder; an exception is a violation, too
Lab = Callable[[int, Path], Outcome]


def run_seeds(
    lab: Lab,
    seeds: Iterable[int],
    output_folder: Path,
    jobs: int,
    *,
    seconds: float = math.inf,
    keep: bool = False,
    ended: Callable[[Outcome], None] = lambda outcome: None,
) -> dict[int, Outcome]:
    """Run seeds in their order, ``jobs`` in parallel, and start none after ``seconds``.

    The folder SEED remains if a seed fails, or with ``keep``. ``ended`` gets each outcome.
    """
    until = time.monotonic() + seconds
    waiting, turn = iter(seeds), threading.Lock()
    outcomes: dict[int, Outcome] = {}

    def work() -> None:
        while time.monotonic() < until:
            with turn:
                seed = next(waiting, None)
            if seed is None:
                return
            outcome = run_seed(lab, seed, output_folder / str(seed), keep)
            with turn:
                outcomes[seed] = outcome
                ended(outcome)

    with ThreadPoolExecutor(jobs) as pool:
        for worker in [pool.submit(work) for _number in range(jobs)]:
            worker.result()
    return outcomes


def run_seed(lab: Lab, seed: int, folder: Path, keep: bool) -> Outcome:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        outcome = lab(seed, folder)
    except Exception:  # the other seeds continue after any error
        outcome = Outcome(seed, [Violation("harness", traceback.format_exc())], [], {})
    (folder / "report").write_text(outcome.text + "\n")
    if not outcome.violations and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def command_line(program: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument(
        "--seeds", type=_seeds, metavar="FROM-TO", help="run these seeds once each (default: from 1 on)"
    )
    parser.add_argument("--seed", type=int, help="run this seed only, print its course, and keep its files")
    parser.add_argument(
        "--for", type=parse_seconds, dest="limit", metavar="TIME", help="start no run after 90s, 55m or 2h"
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of runs in parallel (default: %(default)s)")
    return parser


def run_command(lab: Lab, options: argparse.Namespace, folder: Path) -> int:
    """Run the seeds of a command line, print the outcomes, and return the exit status."""
    seeds = options.seeds or itertools.count(1)
    limit = math.inf if options.seeds else USUAL_LIMIT
    if options.seed is not None:
        seeds, limit = [options.seed], math.inf
    began = time.monotonic()

    def ended(outcome: Outcome) -> None:
        if outcome.violations or options.seed is not None:
            print(outcome.text)
        print(f"seed {outcome.seed}: {'FAILED' if outcome.violations else 'good'}", flush=True)

    outcomes = run_seeds(
        lab,
        seeds,
        folder,
        options.jobs,
        seconds=limit if options.limit is None else options.limit,
        keep=options.seed is not None,
        ended=ended,
    )
    failing = sorted(seed for seed, outcome in outcomes.items() if outcome.violations)
    print(f"\n{totals(outcomes.values())}\nseeds that failed: {' '.join(map(str, failing)) or 'none'}")
    print(f"{time.monotonic() - began:.0f} s; the files of seeds that failed are in {folder}/SEED")
    return 1 if failing else 0


def totals(outcomes: Iterable[Outcome]) -> str:
    counts: collections.Counter[str] = collections.Counter()
    for outcome in outcomes:
        counts.update(seeds=1, **outcome.counts)
        counts.update(f"violations: {violation.rule}" for violation in outcome.violations)
    return "\n".join(f"{name:55} {count:6d}" for name, count in sorted(counts.items()))


def approvals_from(lines: Sequence[dict[str, Any]]) -> list[Approval]:
    """Return the approvals in the simulator's log."""
    return [
        Approval(unix_time(line["time"]), line["vm"], event_id.casefold())
        for line in lines
        if line["what"] == "approval" and line["status"] == 200
        for event_id in line["ids"]
    ]


def unix_time(text: str) -> float:
    """Convert a time of the simulator's log to Unix time."""
    return datetime.fromisoformat(text).timestamp()


def clock_time(at: float) -> str:
    """Return the time of day of a Unix time, in UTC with milliseconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]


def _seeds(text: str) -> range:
    """Parse FROM-TO, or one number."""
    first, _dash, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
