# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One seed in the namespaces of this process; `campaign` starts it there.

python -m chaos.one_seed SEED FOLDER SOCKETS COLLECTIONS
"""

from __future__ import annotations

import sys
from pathlib import Path

from chaos.drawing import draw
from chaos.judge import judge
from chaos.life import live
from chaos.report import Outcome, counts_of
from soak.violations import Violation


def main() -> None:
    seed, folder = int(sys.argv[1]), Path(sys.argv[2])
    plan = draw(seed)
    lived = live(plan, folder, Path(sys.argv[3]), Path(sys.argv[4]))
    found = [*(Violation("harness", error) for error in lived.errors), *judge(lived.evidence)]
    lines = [
        plan.as_text(),
        "timeline:",
        *("  " + line for line in lived.evidence.timeline()),
        "violations:",
        *("  " + str(each) for each in found),
    ]
    counts = counts_of(lived.evidence, lived.done)
    Outcome(
        seed, plan.cause, tuple((each.invariant, each.text) for each in found), "\n".join(lines), counts, 0.0
    ).write(folder / "outcome")


if __name__ == "__main__":
    main()
