# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a host's maintenance for an event, and hosts that are removed with their VM."""

from __future__ import annotations

import typing as t

from ...module_utils.azure_scheduled_events.event_types import removes_vm
from ...module_utils.azure_scheduled_events.outcome import CANCELED, UNKNOWN

# in addition to the outcomes of the event:
# the event took place, or may have, and the host was not prepared
UNPREPARED = "unprepared"
# Azure has removed the VM
REMOVED = "removed"
# the event waits for a later run
WAITING = "waiting"
# a later run continues with the host
CONTINUES = "continues"
FAILED = "failed"
# in check mode
CHECKED = "checked"


Event = t.Mapping[str, t.Any]


class Course(t.NamedTuple):
    """The knowledge of a run about a host and one of its events.

    Attributes:
        checked: the run was in check mode.
        waits: the plan leaves the event to a later run, and the host does not take part.
        removed: the host counts as removed by Azure.
        continues: the run ended its wait, so that the next run can begin.
        failed: the host has a problem.
        pending: the run does not know the end of the event, which the caller reports later.
        prepared: the host was prepared.
        outcome: of the event.
    """

    checked: bool = False
    waits: bool = False
    removed: bool = False
    continues: bool = False
    failed: bool = False
    pending: bool = False
    prepared: bool = False
    outcome: str = UNKNOWN


def outcome_of_maintenance(course: Course) -> str:
    """Return the outcome for the host: that of the event, or one of the constants of this file."""
    for reached, outcome in (
        (course.checked, CHECKED),
        (course.failed, FAILED),
        (course.waits, WAITING),
        (course.removed, REMOVED),
        (course.continues or course.pending, CONTINUES),
        (course.outcome != CANCELED and not course.prepared, UNPREPARED),
    ):
        if reached:
            return outcome
    return course.outcome


def is_removed(
    events: t.Iterable[Event],
    approved: t.Collection[str],
    starts_at: t.Mapping[str, str],
    now: str,
) -> bool:
    """Return True if a host that has not answered for some time will not come back.

    That is the case if a Preempt or a Terminate of the host has begun and is not over: it was seen Started, was
    approved, or its NotBefore has passed. The VM of one that is over has answered since.

    Args:
        events: the events of the note of the host, as they were listed last.
        approved: keys of the events that the run has approved.
        starts_at: NotBefore of events by key, as the controller's clock shows it, in ISO 8601.
        now: the current time by the same clock.
    """
    return any(
        removes_vm(event["event_type"]) and _has_begun(event, approved, starts_at.get(_key(event), ""), now)
        for event in events
        if not event.get("over")
    )


def _has_begun(event: Event, approved: t.Collection[str], starts_at: str, now: str) -> bool:
    is_started = event.get("status") == "Started" or bool(event.get("started"))
    return is_started or _key(event) in approved or bool(starts_at and starts_at <= now)


def _key(event: Event) -> str:
    return str(event["event_id"]).casefold()
