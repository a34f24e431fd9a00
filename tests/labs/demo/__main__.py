# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compare what maintenance events cost with three handlings of them.

The handlings run at the same time, each in a process with its own namespaces.

Exit status: 0 the hook runner lost nothing, 1 it lost something, or a run did not work, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo.handlings import HANDLINGS, OURS
from demo.plan import LONG
from demo.result import Result, events, problems, table
from demo.run import run
from support.hosts import capabilities, rootfs
from support.hosts.namespaces import UNSHARE_COMMAND
from support.repository import REPOSITORY
from support.wait import wait_until

FOLDER = REPOSITORY / ".cache" / "demo-zero-loss"
PATHS = ("tests", "tests/labs", ".", "roles/imds_simulator/files")
# seconds
READY_LIMIT = 600.0
RUN_LIMIT = 1200.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description="Compare what events cost with handlings of them.")
    parser.add_argument("handlings", nargs="*", metavar="HANDLING", help=f"of {', '.join(HANDLINGS)} (default: all)")
    parser.add_argument("--only-in", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.handlings or list(HANDLINGS)
    if unknown := set(names) - set(HANDLINGS):
        parser.error(f"{', '.join(sorted(unknown))}: unknown handling; these are known: {', '.join(HANDLINGS)}")
    if options.only_in is not None:
        run_one(names[0], options.only_in)
        return 0
    if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
        print(f"demo-zero-loss: {reason}", file=sys.stderr)
        return 2
    shutil.rmtree(FOLDER, ignore_errors=True)
    began = time.monotonic()
    try:
        results = run_all(names)
    except AssertionError as error:
        print(f"demo-zero-loss: {error}", file=sys.stderr)
        return 1
    status = report(results)
    print(f"\n{time.monotonic() - began:.0f} s; all answers are in {FOLDER.relative_to(REPOSITORY)}")
    return status


def run_one(name: str, folder: Path) -> None:
    """Run a handling in the namespaces of this process; its load begins when all hosts of all runs are ready."""

    def wait_for_others() -> None:
        (folder / "ready").touch()
        wait_until((folder / "go").exists, "the other runs are ready", timeout=READY_LIMIT)

    (folder / "result").write_bytes(pickle.dumps(run(HANDLINGS[name], LONG, folder, wait_for_others)))


def run_all(names: Sequence[str]) -> list[Result]:
    """Run the handlings of these names; raise AssertionError with the output of a run that has no result."""
    runs = {name: start(name) for name in names}
    try:
        for name, process in runs.items():
            ready = (FOLDER / name / "ready").exists
            wait_until(lambda: ready() or process.poll() is not None, f"{name} is ready", timeout=READY_LIMIT)
            assert process.poll() is None, output_of(name)
        for name in runs:
            (FOLDER / name / "go").touch()
        for name, process in runs.items():
            assert process.wait(RUN_LIMIT) == 0, output_of(name)
        return [pickle.loads((FOLDER / name / "result").read_bytes()) for name in runs]
    finally:
        for process in runs.values():
            process.kill()  # with it the kernel ends all of its namespaces
            process.wait()


def start(name: str) -> subprocess.Popen[bytes]:
    (FOLDER / name).mkdir(parents=True)
    with (FOLDER / name / "output").open("wb") as output:
        return subprocess.Popen(
            [*UNSHARE_COMMAND, sys.executable, "-m", "demo", name, "--only-in", str(FOLDER / name)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(str(REPOSITORY / path) for path in PATHS)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def output_of(name: str) -> str:
    return f"{name}: ended without a result\n{(FOLDER / name / 'output').read_text(errors='replace')[-4000:]}"


def report(results: Sequence[Result]) -> int:
    """Print the figures, and return the exit status."""
    for result in results:
        print(f"{result.handling}\n{events(result)}")
    print(f"\n{table(results)}\n")
    bad = [each for each in results if each.errors or (each.handling == HANDLINGS[OURS].name and each.problems())]
    for result in bad:
        print(f"{result.handling}:\n{problems(result)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
