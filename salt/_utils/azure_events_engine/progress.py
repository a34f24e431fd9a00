# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Announces the steps of a maintenance as bus events, and ends it."""

from __future__ import annotations

from typing import Any

from azure_scheduled_events.event_types import removes_vm

from . import polling
from .answer_handling import PREPARE_TRIES
from .answers import SCHEDULED, STARTED
from .approvals import release_of, withheld
from .maintenance_jobs import is_to_prepare, seconds_left
from .messages import Announce
from .state import Maintenance, Member
from .state_update import StateUpdate

DRAINING = "draining"
PREPARED_ALL = "prepared"
HELD = "held"
APPROVED = "approved"
HAS_STARTED = "started"
OVER = "over"
RECOVERED = "recovered"
FAILED = "failed"
STEPS = (DRAINING, PREPARED_ALL, HELD, APPROVED, HAS_STARTED, OVER, RECOVERED, FAILED)

# seconds without an answer of any VM after which an event that removes VMs, and may have begun, counts as over
_SILENCE_LIMIT = 600.0
# maintenances that are over and still shown in the status
_MAX_OVER = 1000


def announce(update: StateUpdate, at: float) -> None:
    """Send the bus events of changed maintenances, and end those that are over. ``at`` is Unix time."""
    for key, maintenance in list(update.maintenances.items()):
        may_be_removed = removes_vm(maintenance.event_type) and seconds_left(maintenance, at) <= 0.0
        silence = _SILENCE_LIMIT if may_be_removed else update.settings.keep + _SILENCE_LIMIT
        gone = bool(maintenance.members) and update.now - maintenance.last_answer_at >= silence
        if maintenance.changed or gone:
            _announce_steps(update, key, maintenance)
            update.set_maintenance(key, changed=False)
            _end(update, key, update.maintenances[key], gone)


def forget(update: StateUpdate) -> None:
    """Drop maintenances that ended long ago, and those above _MAX_OVER."""
    # ordered by their end
    while update.over:
        key, maintenance = next(iter(update.over.items()))
        if len(update.over) <= _MAX_OVER and update.now - maintenance.over_at <= update.settings.keep:
            break
        update.forget_over(key, permanently=True)


def _announce_steps(update: StateUpdate, key: str, maintenance: Maintenance) -> None:
    members = maintenance.members
    reached = set()
    if any(member.doing == "prepare" or member.record for member in members.values()):
        reached.add(DRAINING)
    waiting = [member for member in members.values() if member.status == SCHEDULED]
    if waiting and all(member.is_prepared for member in waiting):
        reached.add(PREPARED_ALL)
    if maintenance.approved:
        reached.add(APPROVED)
    if any(member.status == STARTED for member in members.values()) or (
        maintenance.approval is not None and maintenance.approval.outcome == "started"
    ):
        reached.add(HAS_STARTED)
    if any(member.outcome == "failed" and member.tries >= PREPARE_TRIES for member in members.values()):
        reached.add(FAILED)
    new = [step for step in STEPS if step in reached - maintenance.announced]
    if new:
        update.set_maintenance(key, announced=maintenance.announced | reached)
        update.save(key)
        for step in new:
            _send(update, key, step)
    if waiting and not maintenance.approval and not any(map(is_to_prepare, waiting)):
        maintenance = update.maintenances[key]
        reason = withheld(maintenance, release_of(update, maintenance))
        if reason and reason != maintenance.withheld:
            update.set_maintenance(key, withheld=reason)
            _send(update, key, HELD, reason=reason)


def _end(update: StateUpdate, key: str, maintenance: Maintenance, gone: bool) -> None:
    if maintenance.hold is not None and not maintenance.members:
        # an operator's hold for an event that no minion lists yet, which only an operator ends
        return
    if maintenance.affected() and not gone:
        return
    if OVER not in maintenance.announced:
        update.set_maintenance(key, announced=update.maintenances[key].announced | {OVER})
        _send(update, key, OVER)
    left = [
        minion for minion, member in maintenance.members.items() if member.record or member.job or _is_in_doubt(member)
    ]
    if left and not gone:
        return
    for minion in left:
        polling.request_poll(update, minion)
    update.set_maintenance(key, announced=update.maintenances[key].announced | {RECOVERED})
    if DRAINING in maintenance.announced and not left:
        _send(update, key, RECOVERED)
    update.end_maintenance(key)


def _is_in_doubt(member: Member) -> bool:
    """Return True if it is unknown whether the minion has a record.

    The last return did not decide it, and no poll has been answered since.
    """
    return member.seen_at < member.done_at and member.outcome not in ("recovered", "not_prepared")


def _send(update: StateUpdate, key: str, step: str, **more: Any) -> None:
    maintenance = update.maintenances[key]
    approval = maintenance.approval
    data = {
        "event_id": maintenance.event_id,
        "event_type": maintenance.event_type,
        "not_before": maintenance.not_before or None,
        "minions": sorted(maintenance.members),
        "approved_by": approval.minion if approval is not None and approval.outcome else None,
        **more,
    }
    if step == FAILED:
        data["reasons"] = {
            minion: member.reason or member.outcome
            for minion, member in sorted(maintenance.members.items())
            if member.outcome == "failed"
        }
    update.add_action(Announce(maintenance.event_id, step, data))
