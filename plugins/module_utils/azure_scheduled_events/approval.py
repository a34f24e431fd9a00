# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Approve events in one call: read them, decide, send."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from .approval_plan import (
    APPROVE,
    APPROVED,
    FAILED,
    NOT_DUE,
    OTHERS_AFFECTED,
    ApprovalCriteria,
    ApprovalOutcome,
    plan_approvals,
)
from .approval_sending import send_approvals
from .document import EventDocument, escape_surrogates
from .printable import printable
from .receipts import Receipts
from .release import ONE_DOCUMENT
from .session import ImdsSession
from .tracking import Tracker

# seconds between the two documents that an approval needs
_CONFIRMED_AFTER = 1.0


class ApprovalResult(NamedTuple):
    """The result of one call that approves.

    Attributes:
        document: the document on which the decisions rest.
        own_name: this VM's resource name, or None where unknown.
        plan: the decision about every selected event.
        items: the outcome of every selected event; the plan where nothing was sent.
        warnings: problems that are not a failure.
    """

    document: EventDocument
    own_name: str | None
    plan: list[ApprovalOutcome]
    items: list[ApprovalOutcome]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; planned approvals are listed as approved."""
        approved = [escape_surrogates(item.event_id) for item in self.items if item.outcome in (APPROVE, APPROVED)]
        return {
            "changed": bool(approved),
            "approvals": [item.as_dict() for item in self.items],
            "approved": approved,
            "incarnation": self.document.incarnation,
            "resource_name": self.own_name,
        }

    def failure(self, event_ids: Sequence[str]) -> str | None:
        """Return why the call has failed, or None.

        The text is one sentence with the reason for each event. An event that affects other VMs is a failure only if
        it is one of ``event_ids``, which the caller named.
        """
        named = {event_id.casefold() for event_id in event_ids}
        bad = [
            f"{printable(item.event_id)}: {item.reason}"
            for item in self.items
            if item.outcome == FAILED or (item.outcome == OTHERS_AFFECTED and item.event_id.casefold() in named)
        ]
        if not bad:
            return None
        return f"{len(bad)} of {len(self.items)} events could not be approved. {'; '.join(bad)}"


def approve(session: ImdsSession, criteria: ApprovalCriteria, receipts_folder: str, send: bool) -> ApprovalResult:
    """Read the events, decide, and send the approvals; only decide if ``send`` is False.

    One document may lack a VM that the approval would release. Therefore an approval is sent only if a second document
    confirms it: the VMs of both count. The name that the session finds replaces ``criteria.own_name``.

    Returns:
        The plan and its outcome.

    Raises:
        ImdsError: the events could not be read.
    """
    tracker = Tracker()
    document = session.read_events(name_required=criteria.selection.needs_own_name or not criteria.release_others)
    criteria = criteria._replace(own_name=session.resource_name)
    receipts = Receipts(receipts_folder, session.imds.endpoint)
    seen = tracker.observe(document)
    plan = plan_approvals(seen, criteria, receipts)
    if send and any(item.outcome == APPROVE for item in plan):
        session.pacer.sleep(_CONFIRMED_AFTER)
        seen = tracker.observe(session.call_with_retries(session.imds.events))
        plan = _confirmed(plan, plan_approvals(seen, criteria, receipts))
    items = plan
    warnings = list(criteria.policy.warnings) if criteria.policy is not None else []
    if send:
        items, problems = send_approvals(session, plan, receipts)
        warnings += problems
    return ApprovalResult(seen.document, session.resource_name, plan, items, warnings)


def _confirmed(first: Sequence[ApprovalOutcome], second: Sequence[ApprovalOutcome]) -> list[ApprovalOutcome]:
    """Return the plan after the second document, without approvals that the first one did not permit."""
    permitted = {item.event_id.casefold() for item in first if item.outcome == APPROVE}
    return [
        item
        if item.outcome != APPROVE or item.event_id.casefold() in permitted
        else item._replace(outcome=NOT_DUE, reason=ONE_DOCUMENT.text)
        for item in second
    ]
