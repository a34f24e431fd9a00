# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Decides which events are approved, and why the others are not.

An approval releases every VM in ``Resources``. Therefore an approval that would release other VMs
than this one needs an explicit option, and an event that has started, or whose status is unknown,
is never approved.
"""

from __future__ import annotations

from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple

from . import release
from .conditions import PREPARED, PolicyContext
from .document import EventDocument, ScheduledEvent, escape_surrogates
from .policy import Policy
from .receipts import Receipts
from .release import UNKNOWN_TYPE, UNREADABLE, blocked_by_scope, blocked_by_state, unknown_value
from .selection import Selection
from .values import parse_choice

APPROVE = "approve"
APPROVED = "approved"
ALREADY_APPROVED = "already_approved"
NOT_FOUND = "not_found"
NOT_SELECTED = "not_selected"
NOT_DUE = "not_due"
STARTED = "started"
OTHERS_AFFECTED = "others_affected"
FAILED = "failed"

_OUTCOMES = {release.STARTED: STARTED, release.ALREADY_APPROVED: ALREADY_APPROVED}


class ApprovalOutcome(NamedTuple):
    """The decision about one event, or the result of its approval.

    Attributes:
        event_id: as IMDS wrote it, or as the caller did where IMDS has no such event.
        outcome: one of the constants above; "approve" only in a plan.
        reason: one sentence for the operator.
        event: the event, or None where IMDS has none.
    """

    event_id: str
    outcome: str
    reason: str
    event: ScheduledEvent | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; a planned approval is listed as approved."""
        return {
            "event_id": escape_surrogates(self.event_id),
            "outcome": APPROVED if self.outcome == APPROVE else self.outcome,
            "reason": self.reason,
            "event": self.event.as_dict() if self.event is not None else None,
        }


class ApprovalCriteria(NamedTuple):
    """The inputs of a decision about approvals.

    Attributes:
        selection: the events to approve.
        own_name: this VM's resource name, or None where unknown.
        release_others: whether events that also affect other VMs may be approved.
        policy: rules that restrict the selection further, or None.
        prepared: for the policy: "none", "running", "ok" or "failed".
        gates: for the policy: results of external checks.
    """

    selection: Selection
    own_name: str | None
    release_others: bool = False
    policy: Policy | None = None
    prepared: str = "none"
    gates: Mapping[str, bool] = MappingProxyType({})

    @classmethod
    def parse(
        cls, selection: Selection, policy: Any, prepared: Any, gates: Any, release_others: Any
    ) -> ApprovalCriteria:
        """Return the criteria that users have written as these options; ``own_name`` stays unknown.

        Args:
            selection: which events the caller means.
            policy: a Policy, the name of a preset, a mapping as in a policy file, or None for the selection alone.
            prepared: one of PREPARED.
            gates: a mapping of names to booleans, or None.
            release_others: a boolean.

        Raises:
            ValueError: an argument cannot be used; PolicyError if it is the policy.
        """
        if not isinstance(release_others, bool):
            raise ValueError(f"release_others has to be true or false, not {release_others!r}")
        gates = dict(gates or {})
        for name, value in gates.items():
            if not isinstance(value, bool):
                raise ValueError(f"gates: {name} has to be true or false, not {value!r}")
        if isinstance(policy, str):
            policy = Policy.preset(policy)
        elif not (policy is None or isinstance(policy, Policy)):
            policy = Policy.from_mapping(policy)
        prepared = parse_choice(prepared, PREPARED, "value of prepared")
        return cls(selection, None, release_others, policy, prepared, gates)


def plan_approvals(document: EventDocument, criteria: ApprovalCriteria, receipts: Receipts) -> list[ApprovalOutcome]:
    """Decide about every selected event, and about every id that the selection names.

    Returns:
        One outcome per event; the approvals of those with outcome "approve" are to be sent.

    Raises:
        OwnNameUnknown: a decision depends on this VM's name, which is unknown.
    """
    requested = tuple(dict.fromkeys(criteria.selection.event_ids or ()))
    missing = "IMDS lists no such event: it is over, was cancelled, or never existed"
    if not document.complete:
        missing = "IMDS lists no such event among those that could be read"
    plan = [ApprovalOutcome(event_id, NOT_FOUND, missing) for event_id in requested if document.find(event_id) is None]
    named = {event_id.casefold() for event_id in requested}
    # of an advice the rules decide, if there are any
    selection = criteria.selection._replace(advice=criteria.policy is not None)
    for event in document.events:
        if not selection.matches(event, criteria.own_name):
            if event.key in named:
                plan.append(
                    ApprovalOutcome(event.event_id, NOT_SELECTED, "the other selection options exclude it", event)
                )
            continue
        plan.append(_plan_event(event, document, criteria, receipts))
    return plan


def _plan_event(
    event: ScheduledEvent, document: EventDocument, criteria: ApprovalCriteria, receipts: Receipts
) -> ApprovalOutcome:
    approved_at = receipts.find(event.event_id, event.not_before)
    blocked = blocked_by_state(event, approved=approved_at is not None)
    if blocked is not None:
        outcome = _OUTCOMES.get(blocked, NOT_DUE)
        reason = f"{blocked.text} (approved at {approved_at})" if outcome == ALREADY_APPROVED else blocked.text
        return ApprovalOutcome(event.event_id, outcome, reason, event)
    if not event.resources or event.key in document.doubtful:
        return ApprovalOutcome(event.event_id, NOT_DUE, UNREADABLE.text, event)
    is_due, reason = _selection_or_policy(event, document, criteria)
    if not is_due:
        return ApprovalOutcome(event.event_id, NOT_DUE, reason, event)
    blocked = None if criteria.release_others else blocked_by_scope(event, criteria.own_name)
    if blocked is not None:
        return ApprovalOutcome(event.event_id, OTHERS_AFFECTED, f"{blocked.text}, which needs release_others", event)
    return ApprovalOutcome(event.event_id, APPROVE, reason, event)


def _selection_or_policy(
    event: ScheduledEvent, document: EventDocument, criteria: ApprovalCriteria
) -> tuple[bool, str]:
    """Whether the caller requests the approval now, and why or why not."""
    if criteria.policy is None:
        unknown = unknown_value(event)
        if unknown is None or unknown.code != UNKNOWN_TYPE:
            return True, "selected"
        if criteria.selection.event_ids or criteria.selection.types:
            return True, "selected"
        return False, f"{unknown.text}, and neither event_ids nor types selects it"
    context = PolicyContext(
        now=document.server_time or datetime.now(timezone.utc),
        own_name=criteria.own_name,
        api_version=document.api_version,
        prepared=criteria.prepared,
        gates=criteria.gates,
    )
    decision = criteria.policy.decide(event, context)
    return decision.due, decision.reason
