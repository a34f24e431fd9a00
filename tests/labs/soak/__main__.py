# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the daemon through random plans by seed, and print violations of the invariants.

Exit status: 0 no violation, 1 a run violated an invariant, 2 wrong usage.
"""

from __future__ import annotations

import sys

from seed_campaign import command_line, run_command
from soak.plan_execution import run_seed
from support.repository import REPOSITORY

if __name__ == "__main__":
    options = command_line("soak", "Run the daemon through random plans by seed.").parse_args()
    sys.exit(run_command(run_seed, options, REPOSITORY / ".cache" / "soak"))
