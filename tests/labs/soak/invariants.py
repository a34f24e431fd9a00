# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""All invariants, which check the evidence of a run. Those of single hooks are in `maintenance_world`."""

from __future__ import annotations

from collections.abc import Iterator

from soak import approval_invariants, recovery_invariants
from soak.evidence import Evidence
from soak.violations import Violation

# an event in so many documents must be in the records
ENOUGH_POLLS = 3


def events_are_in_the_records(evidence: Evidence) -> Iterator[Violation]:
    """Each event that several documents listed is in the records."""
    if any("records-" in performed_action.action.verb for performed_action in evidence.performed):
        return
    recorded = {event["event_id"].casefold() for each in evidence.history for event in each["events"]}
    for key in evidence.event_ids():
        seen = [poll.at for poll in evidence.polls if key in poll.keys and poll.at >= evidence.named_at]
        if (
            len(seen) >= ENOUGH_POLLS
            and key not in recorded
            and not evidence.forgotten(key, "", seen[0], seen[-1] + 3600)
        ):
            yield Violation(
                "5 event in the records",
                f"event {key[:8]} was in {len(seen)} documents and is not in the records",
            )


INVARIANTS = (
    approval_invariants.approvals_follow_preparation,
    approval_invariants.approvals_are_sent_once,
    events_are_in_the_records,
    recovery_invariants.recoveries_succeed,
    recovery_invariants.recoveries_succeed_once,
    recovery_invariants.recoveries_wait_for_the_end,
)


def find_violations(evidence: Evidence) -> list[Violation]:
    return [violation for invariant in INVARIANTS for violation in invariant(evidence)]
