# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""All invariants that are judged by the evidence of a run."""

from __future__ import annotations

from soak import about_approvals, about_preparations, about_recoveries
from soak.evidence import Evidence
from soak.violations import Violation

INVARIANTS = (
    about_approvals.follow_preparation,
    about_approvals.release_no_others,
    about_approvals.are_single,
    about_preparations.are_single,
    about_preparations.are_not_lost,
    about_recoveries.come,
    about_recoveries.are_single,
    about_recoveries.wait_for_the_end,
    about_recoveries.wait_for_others,
)


def judge(evidence: Evidence) -> list[Violation]:
    """What the evidence shows that must not be."""
    return [violation for invariant in INVARIANTS for violation in invariant(evidence)]
