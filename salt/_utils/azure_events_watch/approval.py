# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Approving, as one function call or state does it."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from azure_scheduled_events.approving import (
    APPROVE,
    APPROVED,
    FAILED,
    OTHERS_AFFECTED,
    Grounds,
    Outcome,
    plan_approvals,
    send_approvals,
)
from azure_scheduled_events.document import displayable
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.policy_file import load_policy
from azure_scheduled_events.predicates import PREPARED, one_of
from azure_scheduled_events.receipts import Receipts
from azure_scheduled_events.selection import Selection

from .conversation import Conversation, Where


class Wish(NamedTuple):
    """What is to be approved, and on which conditions."""

    selection: Selection
    policy: Optional[Policy] = None
    prepared: str = "none"
    gates: dict[str, bool] = {}
    release_others: bool = False


def read_wish(selection: Selection, policy: Any, policy_file: Any, prepared: Any, gates: Any, release_others: Any) -> Wish:
    """The wish that a caller's arguments describe. Raises ValueError, PolicyError among them."""
    chosen = (selection.event_ids, selection.types, selection.statuses, selection.sources, policy, policy_file)
    if all(word is None for word in chosen):
        raise ValueError("one of event_ids, types, statuses, sources, policy and policy_file is needed: nothing approves by default")
    if policy is not None and policy_file is not None:
        raise ValueError("policy and policy_file exclude each other")
    if not isinstance(release_others, bool):
        raise ValueError("release_others has to be true or false, not %r" % (release_others,))
    checked = dict(gates or {})
    for name, value in checked.items():
        if not isinstance(value, bool):
            raise ValueError("gates: %s has to be true or false, not %r" % (name, value))
    rules: Optional[Policy] = None
    if policy_file is not None:
        rules = load_policy(str(policy_file))
    elif policy is not None:
        rules = Policy.preset(policy) if isinstance(policy, str) else Policy.from_mapping(policy)
    return Wish(selection, rules, one_of(prepared, PREPARED, "word for prepared"), checked, release_others)


def approve(wish: Wish, where: Where, receipts_folder: str, test: bool) -> tuple[dict[str, Any], Optional[str]]:
    """Approve what is wished: (the result, why it failed or None). Raises ImdsError where the events cannot be read.

    test: nothing is sent, and the result tells what would be approved.
    """
    conversation = Conversation(where)
    document = conversation.read(name_required=wish.selection.needs_own_name or not wish.release_others)
    receipts = Receipts(receipts_folder, conversation.imds.endpoint)
    grounds = Grounds(wish.selection, conversation.known_name, wish.release_others, wish.policy, wish.prepared, wish.gates)
    items = plan_approvals(document, grounds, receipts, conversation.imds.api_version)
    warnings = list(document.warnings)
    if not test:
        items, doubts = send_approvals(conversation.pacer, items, receipts, conversation.left())
        warnings += doubts
        if document.complete:
            receipts.forget_all_but(event.event_id for event in document.events)
    approved = [displayable(item.event_id) for item in items if item.outcome in (APPROVE, APPROVED)]
    result = {
        "changed": bool(approved),
        "approvals": [_shown(item) for item in items],
        "approved": approved,
        "incarnation": document.incarnation,
        "resource_name": conversation.known_name,
        "warnings": warnings,
    }
    return result, _failure(items, wish.selection.event_ids or ())


def _shown(item: Outcome) -> dict[str, Any]:
    return {
        "event_id": displayable(item.event_id),
        "outcome": APPROVED if item.outcome == APPROVE else item.outcome,
        "reason": item.reason,
        "event": item.event.as_dict() if item.event is not None else None,
    }


def _failure(items: list[Outcome], event_ids: tuple[str, ...]) -> Optional[str]:
    named = {event_id.casefold() for event_id in event_ids}
    bad = [
        "%s: %s" % (displayable(item.event_id), item.reason)
        for item in items
        if item.outcome == FAILED or (item.outcome == OTHERS_AFFECTED and item.event_id.casefold() in named)
    ]
    return "%d of %d events could not be approved. %s" % (len(bad), len(items), "; ".join(bad)) if bad else None
