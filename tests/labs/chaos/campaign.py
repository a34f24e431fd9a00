# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs many seeds, each in a process with its own namespaces, and keeps the files of those that fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chaos.plan_generator import draw_plan
from chaos.report import Outcome
from support.hosts.namespaces import UNSHARE_COMMAND

TESTS = Path(__file__).resolve().parents[2]
PATHS = (TESTS, TESTS / "labs", TESTS.parent, TESTS.parent / "roles" / "imds_simulator" / "files")
# seconds; each run of a seed has its own, shorter limit
SEED_TIMEOUT = 1200.0


def run_seed(seed: int, output_folder: Path, collections: Path, keep: bool = False) -> Outcome:
    """Run one seed; keep its files in the folder SEED if it failed, or if ``keep`` is set."""
    folder = output_folder / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as sockets:
        outcome = _run_in_namespaces(seed, folder, Path(sockets), collections)
    outcome = outcome._replace(seconds=time.monotonic() - began)
    (folder / "report").write_text(outcome.text + "\n")
    if not outcome.violations and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _run_in_namespaces(seed: int, folder: Path, sockets: Path, collections: Path) -> Outcome:
    command = [
        *UNSHARE_COMMAND,
        sys.executable,
        "-m",
        "chaos.one_seed",
        str(seed),
        str(folder),
        str(sockets),
        str(collections),
    ]
    with (folder / "harness").open("w") as harness_log:
        try:
            subprocess.run(
                command,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=harness_log,
                stderr=harness_log,
                timeout=SEED_TIMEOUT,
                check=True,
            )
            return Outcome.read(folder / "outcome")
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            plan = draw_plan(seed)
            text = f"{plan.as_text()}\nharness: {error}\n{(folder / 'harness').read_text()}"
            return Outcome(seed, plan.cause, (("harness", str(error)),), text, {"seeds": 1}, 0.0)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS))}


def run_seeds(
    seeds: Iterable[int],
    output_folder: Path,
    collections: Path,
    jobs: int,
    ended: Callable[[Outcome], None],
    *,
    seconds: float | None = None,
    keep: bool = False,
) -> None:
    """Run seeds in their order, ``jobs`` in parallel, and start none after ``seconds``; ``ended`` gets each outcome."""
    until = time.monotonic() + seconds if seconds is not None else float("inf")
    waiting, turn = iter(seeds), threading.Lock()

    def work() -> None:
        while time.monotonic() < until:
            with turn:
                seed = next(waiting, None)
            if seed is None:
                return
            outcome = run_seed(seed, output_folder, collections, keep)
            with turn:
                ended(outcome)

    with ThreadPoolExecutor(jobs) as pool:
        for worker in [pool.submit(work) for _number in range(jobs)]:
            worker.result()
