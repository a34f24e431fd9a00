# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the daemon through random plans by seed, and print violations of the invariants.

Exit status: 0 no violation, 1 a run violated an invariant, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from soak.campaign import run_seeds
from soak.plan_generator import draw_plan
from soak.report import Outcome, Totals
from support.repository import REPOSITORY

UNITS = {"s": 1, "m": 60, "h": 3600}
FOREVER = 10 * 365 * 86400.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument(
        "--seeds",
        type=seeds,
        default=None,
        metavar="FROM-TO",
        help="run these seeds once each (default: from 1 on until the time limit)",
    )
    parser.add_argument(
        "--for",
        type=seconds,
        default=None,
        dest="limit",
        metavar="TIME",
        help="start no run after this time, such as 90s, 55m or 2h",
    )
    parser.add_argument("--seed", type=int, help="run this seed only, and print its actions")
    parser.add_argument("--jobs", type=int, default=2, help="number of runs in parallel (default: %(default)s)")
    parser.add_argument(
        "--folder",
        type=Path,
        default=REPOSITORY / ".cache" / "soak",
        help="folder for the files of failed runs (default: %(default)s)",
    )
    parser.add_argument("--plan", action="store_true", help="print the plan of --seed, and run nothing")
    options = parser.parse_args(arguments)
    if options.plan:
        print(draw_plan(options.seed or 0).as_text())
        return 0
    limit = (
        options.limit
        if options.limit is not None
        else (FOREVER if options.seeds or options.seed is not None else 600.0)
    )
    chosen: Iterable[int] = options.seeds or itertools.count(1)
    if options.seed is not None:
        chosen = [options.seed]
    totals, began = Totals(), time.monotonic()

    def ended(outcome: Outcome) -> None:
        totals.add(outcome)
        if outcome.violations or options.seed is not None:
            print(outcome.as_text(), flush=True)
        print(
            f"seed {outcome.plan.seed}: {'FAILED' if outcome.violations else 'good'}, {outcome.seconds:.1f} s",
            flush=True,
        )

    run_seeds(chosen, options.folder, options.jobs, limit, ended)
    print(f"\n{totals.as_text()}\n{time.monotonic() - began:.0f} s")
    if totals.failing:
        print(f"their files are in {options.folder}/SEED; `make soak SOAK_SEED=N` repeats one of them")
    return 1 if totals.failing else 0


def seeds(text: str) -> range:
    """Parse FROM-TO, or one number."""
    first, _dash, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def seconds(text: str) -> float:
    """Parse a number with the unit s, m or h; without a unit it is seconds."""
    unit = UNITS.get(text[-1:])
    return float(text[:-1]) * unit if unit else float(text)


if __name__ == "__main__":
    sys.exit(main())
