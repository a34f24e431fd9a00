# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the maintenance playbook over real sshd, disturbed by seed, and print violations of the rules.

Exit status: 0 no violation, 1 a seed violated a rule, 2 wrong usage or impossible on this machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from chaos.plan_execution import Outcome
from chaos.seed_runs import run_seeds
from support.hosts import capabilities, rootfs
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

FOLDER = REPOSITORY / ".cache" / "chaos"


def main() -> int:
    options = _parser().parse_args()
    if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
        print(f"chaos: cannot run here: {reason}; `.venv/bin/nox -s system` installs missing programs", file=sys.stderr)
        return 2
    copy_tree(options.of.resolve(), FOLDER / "collections")
    is_single = options.seed is not None
    seeds = [options.seed] if is_single else options.seeds
    began, outcomes = time.monotonic(), []
    for outcome in run_seeds(FOLDER / "collections", seeds, FOLDER, options.jobs, keep=is_single):
        outcomes.append(outcome)
        if outcome.violations or is_single:
            print(outcome.text)
        print(f"seed {outcome.seed}: {'FAILED' if outcome.violations else 'good'}", flush=True)
    failing = sorted(outcome.seed for outcome in outcomes if outcome.violations)
    print(f"\n{_totals(outcomes)}\nseeds that failed: {' '.join(map(str, failing)) or 'none'}")
    print(f"{time.monotonic() - began:.0f} s; the files of seeds that failed are in {FOLDER}/SEED")
    return 1 if failing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="chaos", description="Run the maintenance playbook over real sshd, disturbed by seed."
    )
    parser.add_argument(
        "--seeds", type=_seeds, default=range(1, 101), metavar="FROM-TO", help="run these seeds (default: 1-100)"
    )
    parser.add_argument("--seed", type=int, help="run this seed only, print its course, and keep its files")
    parser.add_argument("--jobs", type=int, default=2, help="number of runs in parallel (default: %(default)s)")
    parser.add_argument("--of", type=Path, default=REPOSITORY, help="test the playbook of another checkout")
    return parser


def _seeds(text: str) -> range:
    """Parse FROM-TO, or one number."""
    first, _dash, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _totals(outcomes: Sequence[Outcome]) -> str:
    counts = Counter({"seeds": len(outcomes)})
    for outcome in outcomes:
        counts.update(outcome.counts)
        counts.update(f"violations: {violation.rule}" for violation in outcome.violations)
    return "\n".join(f"{name:55} {count:6d}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
