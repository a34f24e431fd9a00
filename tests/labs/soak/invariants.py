# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""All invariants, which check the evidence of a run."""

from __future__ import annotations

from soak import approval_invariants, preparation_invariants, recovery_invariants
from soak.evidence import Evidence
from soak.violations import Violation

INVARIANTS = (
    approval_invariants.approvals_follow_preparation,
    approval_invariants.approvals_release_no_others,
    approval_invariants.approvals_are_sent_once,
    preparation_invariants.preparations_succeed_once,
    preparation_invariants.events_are_in_the_records,
    recovery_invariants.recoveries_succeed,
    recovery_invariants.recoveries_succeed_once,
    recovery_invariants.recoveries_wait_for_the_end,
    recovery_invariants.recoveries_wait_for_other_events,
)


def find_violations(evidence: Evidence) -> list[Violation]:
    return [violation for invariant in INVARIANTS for violation in invariant(evidence)]
