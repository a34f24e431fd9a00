# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run one seed in the namespaces of this process; `campaign` starts it.

python -m chaos.one_seed SEED FOLDER SOCKETS COLLECTIONS
"""

from __future__ import annotations

import sys
from pathlib import Path

from chaos.plan_execution import execute
from chaos.plan_generator import draw_plan
from chaos.report import Outcome, counts_of
from chaos.rules import find_violations
from soak.violations import Violation


def main() -> None:
    seed, folder = int(sys.argv[1]), Path(sys.argv[2])
    plan = draw_plan(seed)
    result = execute(plan, folder, Path(sys.argv[3]), Path(sys.argv[4]))
    found = [*(Violation("harness", error) for error in result.errors), *find_violations(result.evidence)]
    lines = [
        plan.as_text(),
        "timeline:",
        *("  " + line for line in result.evidence.timeline()),
        "violations:",
        *("  " + str(each) for each in found),
    ]
    counts = counts_of(result.evidence, result.done)
    Outcome(
        seed, plan.cause, tuple((each.invariant, each.text) for each in found), "\n".join(lines), counts, 0.0
    ).write(folder / "outcome")


if __name__ == "__main__":
    main()
