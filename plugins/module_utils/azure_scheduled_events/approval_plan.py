# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Decides which events are approved, and why the others are not.

An approval releases every VM in ``Resources``. Therefore an approval that would release other VMs
than this one needs an explicit option, and an event that has started, or whose status is unknown,
is never approved. The caller's selection or policy states that this VM is prepared.
"""

from __future__ import annotations

from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple

from . import release
from .conditions import PREPARED, PolicyContext
from .document import EventDocument, ScheduledEvent
from .options import parse_boolean, parse_choice, parse_option
from .policy import NOW, Decision, Policy
from .printable import escape_surrogates
from .receipts import Receipts
from .release import UNKNOWN_STATUS, UNKNOWN_VALUES, Obstacle, Report, own_obstacles
from .selection import Selection
from .tracking import Observation, Sighting

APPROVE = "approve"
APPROVED = "approved"
NOT_FOUND = "not_found"
NOT_SELECTED = "not_selected"
NOT_DUE = "not_due"
FAILED = "failed"
# what to do about an obstacle that concerns other VMs
_REMEDIES = {release.OTHERS_AFFECTED: ", which needs release_others", release.LEAVING: "; read the events again"}


class ApprovalOutcome(NamedTuple):
    """The decision about one event, or the result of its approval.

    Attributes:
        event_id: as IMDS wrote it, or as the caller did where IMDS has no such event.
        outcome: one of the constants above, or the code of an obstacle; "approve" only in a plan.
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

        ``policy`` is a Policy, the name of a preset, a mapping as in a policy file, or None for the selection alone.

        Raises:
            ValueError: an argument cannot be used; PolicyError if it is the policy.
        """
        parse_option("release_others", release_others, parse_boolean)
        gates = dict(gates or {})
        for name, value in gates.items():
            parse_option(f"gates.{name}", value, parse_boolean)
        if not (policy is None or isinstance(policy, Policy)):
            policy = Policy.parse(policy)
        prepared = parse_choice(prepared, PREPARED, "value of prepared")
        return cls(selection, None, release_others, policy, prepared, gates)


def plan_approvals(seen: Observation, criteria: ApprovalCriteria, receipts: Receipts) -> list[ApprovalOutcome]:
    """Decide about every selected event that the last document lists, and about every id that the selection names.

    Returns:
        One outcome per event; the approvals of those with outcome "approve" are to be sent.

    Raises:
        OwnNameUnknown: a decision depends on this VM's name, which is unknown.
    """
    requested = {event_id.casefold(): event_id for event_id in criteria.selection.event_ids or ()}
    listed = {key: sighting for key, sighting in seen.events.items() if sighting.listed}
    missing = "IMDS lists no such event: it is over, was cancelled, or never existed"
    if not seen.document.complete:
        missing = "IMDS lists no such event among those that could be read"
    plan = [ApprovalOutcome(event_id, NOT_FOUND, missing) for key, event_id in requested.items() if key not in listed]
    # of an advice the rules decide, if there are any
    selection = criteria.selection._replace(advice=criteria.policy is not None)
    for key, sighting in listed.items():
        if selection.matches(sighting.event, criteria.own_name):
            plan.append(_plan_event(sighting, seen.document, criteria, receipts))
        elif key in requested:
            reason = "the other selection options exclude it"
            plan.append(ApprovalOutcome(sighting.event.event_id, NOT_SELECTED, reason, sighting.event))
    return plan


def _plan_event(
    sighting: Sighting, document: EventDocument, criteria: ApprovalCriteria, receipts: Receipts
) -> ApprovalOutcome:
    event = sighting.event

    def planned(outcome: str, reason: str) -> ApprovalOutcome:
        return ApprovalOutcome(event.event_id, outcome, reason, event)

    found = own_obstacles(Report(sighting, True), criteria.own_name, criteria.release_others)
    if release.STARTED in found:
        return planned(release.STARTED.code, release.STARTED.text)
    approved_at = receipts.find(event.event_id, event.not_before)
    if approved_at is not None:
        return planned(release.ALREADY_APPROVED.code, f"{release.ALREADY_APPROVED.text} (approved at {approved_at})")
    blocked = _blocked_by_event(found, criteria)
    if blocked is not None:
        return planned(NOT_DUE, blocked)
    decision = _decision(event, document, criteria)
    if decision.code is not None:
        return planned(NOT_DUE, decision.reason)
    if found and found[-1].code in _REMEDIES:
        return planned(release.OTHERS_AFFECTED, found[-1].text + _REMEDIES[found[-1].code])
    return planned(APPROVE, decision.reason)


def _blocked_by_event(found: list[Obstacle], criteria: ApprovalCriteria) -> str | None:
    """Return why the event must not be approved whatever other VMs it affects, or None.

    About unknown values, except that of the status, the policy decides, or a caller who names the event or its type.
    """
    is_decided = criteria.policy is not None or criteria.selection.event_ids or criteria.selection.types
    for obstacle in found:
        if obstacle.code in UNKNOWN_VALUES - {UNKNOWN_STATUS}:
            if not is_decided:
                return f"{obstacle.text}, and neither event_ids nor types selects it"
        elif obstacle.code not in _REMEDIES:
            return obstacle.text
    return None


def _decision(event: ScheduledEvent, document: EventDocument, criteria: ApprovalCriteria) -> Decision:
    """Return the decision of the policy; without one the selection is a request to approve now."""
    if criteria.policy is None:
        return Decision(NOW, "selected")
    context = PolicyContext(
        now=document.server_time or datetime.now(timezone.utc),
        own_name=criteria.own_name,
        api_version=document.api_version,
        prepared=criteria.prepared,
        gates=criteria.gates,
    )
    return criteria.policy.decide(event, context)
