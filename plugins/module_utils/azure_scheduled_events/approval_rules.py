# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The reasons against an approval, each with a code and a text (docs/reference/scheduled-events.md 7)."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .document import EVENT_SOURCES, EVENT_STATUSES, RESOURCE_TYPES, ScheduledEvent
from .event_types import EVENT_TYPES
from .identity import affects_only
from .printable import printable


class BlockCode(Enum):
    """Reasons against an approval: of the event, of the caller, and of a policy."""

    STARTED = "started"
    UNKNOWN_STATUS = "unknown_status"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_SOURCE = "unknown_source"
    UNKNOWN_RESOURCE_TYPE = "unknown_resource_type"
    ALREADY_APPROVED = "already_approved"
    UNREADABLE = "unreadable"
    OTHERS_AFFECTED = "others_affected"
    NO_RULE = "no_rule"
    NOT_APPROVING = "not_approving"
    MANUAL = "manual"
    NOT_PREPARED = "not_prepared"
    PREPARATION_FAILED = "preparation_failed"
    DELAY = "delay"
    TIME_LEFT = "time_left"


class Blocked(NamedTuple):
    """Why an event is not approved; ``text`` is a clause in which "it" is the event."""

    code: BlockCode
    text: str


STARTED = Blocked(BlockCode.STARTED, "it has started; there is nothing left to approve")
ALREADY_APPROVED = Blocked(BlockCode.ALREADY_APPROVED, "this host has approved it; Azure has not started it yet")
UNREADABLE = Blocked(BlockCode.UNREADABLE, "the VMs that it affects are not readable")
MANUAL = Blocked(BlockCode.MANUAL, "an operator has to approve it")
NOT_PREPARED = Blocked(BlockCode.NOT_PREPARED, "its preparation is not done")
PREPARATION_FAILED = Blocked(BlockCode.PREPARATION_FAILED, "its preparation failed")


def blocked_by_state(event: ScheduledEvent, seen_started: bool = False, approved: bool = False) -> Blocked | None:
    """Return why the event can no longer or not yet be approved, or None.

    The first reason that applies counts. ``event`` is as IMDS listed it last; ``seen_started`` says whether it was
    ever Started, and ``approved`` whether IMDS has accepted an approval of this host.
    """
    if event.status == "Started" or seen_started:
        return STARTED
    if event.status not in EVENT_STATUSES:
        return _unknown(BlockCode.UNKNOWN_STATUS, "status", event.status)
    return ALREADY_APPROVED if approved else None


def blocked_by_scope(event: ScheduledEvent, own_name: str | None) -> Blocked | None:
    """Return why the event is not for this VM alone to approve, or None.

    The reason is OTHERS_AFFECTED with the names of the event's VMs.

    Raises:
        OwnNameUnknown: ``own_name``, this VM's resource name, is None or empty.
    """
    if affects_only(event, own_name):
        return None
    names = printable(", ".join(event.resources))
    return Blocked(BlockCode.OTHERS_AFFECTED, f"an approval would release other VMs too ({names})")


def unknown_value(event: ScheduledEvent) -> Blocked | None:
    """Return the first value of the event that this version does not know, or None; no rule approves such an event."""
    if event.event_type not in EVENT_TYPES:
        return _unknown(BlockCode.UNKNOWN_TYPE, "type", event.event_type)
    if event.status not in EVENT_STATUSES:
        return _unknown(BlockCode.UNKNOWN_STATUS, "status", event.status)
    if event.source is not None and event.source not in EVENT_SOURCES:
        return _unknown(BlockCode.UNKNOWN_SOURCE, "source", event.source)
    if event.resource_type is not None and event.resource_type not in RESOURCE_TYPES:
        return _unknown(BlockCode.UNKNOWN_RESOURCE_TYPE, "resource type", event.resource_type)
    return None


def _unknown(code: BlockCode, what: str, value: str) -> Blocked:
    return Blocked(code, f"its {what} {value!r} is unknown")
