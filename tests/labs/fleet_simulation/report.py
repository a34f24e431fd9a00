# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The output of a simulated fleet: the counts of a run, and for a violation the log of its host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleet_simulation.azure_model import date_at
from fleet_simulation.ledger import Violation

# violations that are printed
MOST = 3


def violations_as_text(seed: int, violations: Sequence[Violation]) -> str:
    """Return the first violations, each with the log of its host since that host was idle."""
    lines = []
    for violation in violations[:MOST]:
        lines.append(f"seed {seed}: {violation.invariant}: {violation.host}, {violation.key}: {violation.text}")
        lines += [f"  {date_at(at):%H:%M:%S.%f} {text}" for at, text in violation.log]
    if len(violations) > MOST:
        lines.append(f"seed {seed}: {len(violations) - MOST} more violations")
    return "\n".join(lines)


def counts_as_text(counts: Mapping[str, int]) -> str:
    width = max(map(len, counts), default=0)
    return "\n".join(f"  {name:{width}} {counts[name]:7d}" for name in sorted(counts, key=str.casefold))
