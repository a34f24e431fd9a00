# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs seeds side by side, each in a process with namespaces of its own.

    python -m chaos.seed_runs SEED FOLDER SOCKETS COLLECTIONS

SOCKETS is a folder with a short path, for sockets of ssh. COLLECTIONS has the collection under test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from chaos.plan import draw_plan
from chaos.plan_execution import Outcome, execute
from chaos.rules import Violation
from support.hosts.namespaces import UNSHARE_COMMAND
from support.repository import REPOSITORY

PATHS = ("tests", "tests/labs", ".", "plugins/module_utils", "roles/imds_simulator/files")
# seconds; each run of a seed has its own, shorter limit
SEED_TIMEOUT = 1200.0


def run_seeds(
    collections: Path, seeds: Iterable[int], folder: Path, jobs: int, keep: bool = False
) -> Iterator[Outcome]:
    """Run seeds in their order, ``jobs`` in parallel; yield each outcome when it is known.

    The folder SEED remains if a seed fails, or with ``keep``.
    """
    with ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(_run_seed, collections, seed, folder / str(seed), keep) for seed in seeds]
        for run in as_completed(runs):
            yield run.result()


def _run_seed(collections: Path, seed: int, folder: Path, keep: bool) -> Outcome:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        outcome = _run_in_namespaces(collections, seed, folder)
    except Exception:  # the other seeds continue after any error
        outcome = Outcome(seed, [Violation("harness", traceback.format_exc())], [], {})
    (folder / "report").write_text(outcome.text + "\n")
    if not outcome.violations and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _run_in_namespaces(collections: Path, seed: int, folder: Path) -> Outcome:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(REPOSITORY / path) for path in PATHS)}
    with tempfile.TemporaryDirectory(prefix="chaos-") as sockets, (folder / "harness").open("w") as log:
        words = ["-m", "chaos.seed_runs", str(seed), str(folder), sockets, str(collections)]
        subprocess.run(
            [*UNSHARE_COMMAND, sys.executable, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=SEED_TIMEOUT,
            check=False,
        )
    assert (folder / "outcome").exists(), (folder / "harness").read_text()
    _seed, violations, lines, counts = json.loads((folder / "outcome").read_text())
    return Outcome(seed, [Violation(*violation) for violation in violations], lines, counts)


def main() -> None:
    seed, folder, sockets, collections = int(sys.argv[1]), *map(Path, sys.argv[2:])
    outcome = execute(seed, draw_plan(seed), folder, sockets, collections)
    (folder / "outcome").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
