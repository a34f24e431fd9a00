# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the maintenance playbook over real sshd, disturbed by seed, and print violations of the rules.

Exit status: 0 no violation, 1 a seed violated a rule, 2 wrong usage or impossible on this machine.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from chaos.campaign import run_seeds
from chaos.plan_generator import draw_plan
from chaos.report import Outcome, Totals
from support.hosts import capabilities, rootfs
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument(
        "--seeds",
        type=seeds,
        default=range(1, 101),
        metavar="FROM-TO",
        help="run these seeds once each (default: 1-100)",
    )
    parser.add_argument(
        "--for",
        type=float,
        default=None,
        dest="limit",
        metavar="MINUTES",
        help="take seeds from 1 on, and start none after this time",
    )
    parser.add_argument("--seed", type=int, help="run this seed only, and print its timeline")
    parser.add_argument(
        "--jobs", type=int, default=2, help="number of seeds that run in parallel (default: %(default)s)"
    )
    parser.add_argument(
        "--of", type=Path, default=REPOSITORY, metavar="CHECKOUT", help="test the playbook of another checkout"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=REPOSITORY / ".cache" / "chaos",
        help="folder for the files of failed seeds (default: %(default)s)",
    )
    parser.add_argument("--keep", action="store_true", help="keep the files of good seeds, too; --seed implies it")
    parser.add_argument("--plan", action="store_true", help="print the plan of --seed, and run nothing")
    options = parser.parse_args(arguments)
    if options.plan:
        print(draw_plan(options.seed or 0).as_text())
        return 0
    if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
        print(f"chaos: cannot run here: {reason}; `.venv/bin/nox -s system` installs missing programs", file=sys.stderr)
        return 2
    collections = options.folder / "collections"
    copy_tree(options.of.resolve(), collections)
    chosen: Iterable[int] = itertools.count(1) if options.limit is not None else options.seeds
    if options.seed is not None:
        chosen = [options.seed]
    totals, began = Totals(), time.monotonic()

    def ended(outcome: Outcome) -> None:
        totals.add(outcome)
        if outcome.violations or options.seed is not None:
            print(outcome.text, flush=True)
        verdict = "FAILED" if outcome.violations else "good"
        print(f"seed {outcome.seed} ({outcome.cause}): {verdict}, {outcome.seconds:.0f} s", flush=True)

    limit = None if options.limit is None else 60 * options.limit
    run_seeds(
        chosen,
        options.folder,
        collections,
        options.jobs,
        ended,
        seconds=limit,
        keep=options.keep or options.seed is not None,
    )
    print(f"\n{totals.as_text()}\n{time.monotonic() - began:.0f} s")
    if totals.failing:
        print(f"their files are in {options.folder}/SEED; `make chaos CHAOS_SEED=N` repeats one of them")
    return 1 if totals.failing else 0


def seeds(text: str) -> range:
    """Parse FROM-TO, or one number."""
    first, _dash, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    sys.exit(main())
