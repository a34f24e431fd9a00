# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs many seeds in parallel until a time limit, and keeps the files of those that fail."""

from __future__ import annotations

import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from soak.invariants import find_violations
from soak.plan_execution import execute
from soak.plan_generator import draw_plan
from soak.report import Outcome, counts_of
from soak.violations import Violation


def run_seed(seed: int, output_folder: Path) -> Outcome:
    """Run one seed; keep its files in the folder SEED if it failed."""
    folder = output_folder / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    plan = draw_plan(seed)
    began = time.monotonic()
    try:
        # processes are found by the path of their folder, which must not be a prefix of another one
        evidence, found = execute(plan, folder / "host")
        found = [*found, *find_violations(evidence)]
        counts, performed = counts_of(evidence), [str(performed_action) for performed_action in evidence.performed]
    except Exception:  # the other seeds continue after any error
        found, counts, performed = [Violation("harness", traceback.format_exc())], {"runs": 1}, []
    outcome = Outcome(plan, found, performed, counts, time.monotonic() - began)
    if found:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report").write_text(outcome.as_text() + "\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def run_seeds(
    seeds: Iterable[int], output_folder: Path, jobs: int, seconds: float, ended: Callable[[Outcome], None]
) -> None:
    """Run seeds in their order, ``jobs`` in parallel, and start none after ``seconds``; ``ended`` gets each outcome."""
    until = time.monotonic() + seconds
    waiting, turn = iter(seeds), threading.Lock()

    def work() -> None:
        while time.monotonic() < until:
            with turn:
                seed = next(waiting, None)
            if seed is None:
                return
            outcome = run_seed(seed, output_folder)
            with turn:
                ended(outcome)

    with ThreadPoolExecutor(jobs) as pool:
        for worker in [pool.submit(work) for _number in range(jobs)]:
            worker.result()
