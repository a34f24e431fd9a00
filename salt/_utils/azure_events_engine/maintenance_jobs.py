# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Jobs that prepare and recover: one for each event and step, for all minions that are due."""

from __future__ import annotations

import math
from functools import partial

from azure_scheduled_events.event_types import removes_vm
from azure_scheduled_events.timestamps import parse_time
from azure_scheduled_events.urgency import Urgency, most_urgent_first

from . import polling
from .answer_handling import may_retry
from .answers import SCHEDULED
from .state import Maintenance, Member
from .state_update import StateUpdate

# seconds for which a preparation counts towards at_once: publishing jobs and taking their first
# returns loads the master, the steps themselves do not
_STARTING = 10.0
# seconds after which an unchanged maintenance is examined again: one that waits because of
# at_once, and others
_QUEUE_INTERVAL = 0.5
_MAX_IDLE = 5.0


def request_due(update: StateUpdate, at: float) -> None:
    """Publish the preparations and recoveries that are due.

    ``at`` is in seconds since 1970.
    """
    keys = [key for key, maintenance in update.maintenances.items() if maintenance.work_at <= update.now]
    _poll_late(update, keys)
    _prepare(update, keys, at)
    _recover(update, keys)
    for key in keys:
        update.set_maintenance(
            key, work_at=_next_work(update, update.maintenances[key]), changed=update.maintenances[key].changed
        )


def _poll_late(update: StateUpdate, keys: list[str]) -> None:
    for key in keys:
        for minion, member in update.maintenances[key].members.items():
            if member.job and update.now - member.asked_at >= update.settings.answer:
                polling.poll_late(update, minion)


def _prepare(update: StateUpdate, keys: list[str], at: float) -> None:
    """Publish the preparations that are due, the most urgent event first."""
    due = [(key, minions) for key in keys if (minions := _due_to_prepare(update, update.maintenances[key]))]
    if not due:
        return
    occupied = {
        minion
        for one in update.maintenances.values()
        for minion, member in one.members.items()
        if member.doing == "prepare"
    }
    count = sum(map(partial(_is_starting, update), update.maintenances.values()))
    for key, minions in most_urgent_first(due, lambda item: _urgency(update.maintenances[item[0]], item[0], at)):
        maintenance = update.maintenances[key]
        urgent = removes_vm(maintenance.event_type)
        # a minion prepares for one event at a time, except for an event that removes its VM
        free = [minion for minion in minions if (urgent or minion not in occupied) and update.credit(minion) >= 1.0]
        if not free or (count >= update.settings.at_once and not urgent):
            continue
        token = update.publish("prepare", free, key, event_id=maintenance.event_id)
        for minion in free:
            update.set_member(key, minion, doing="prepare", job=token, asked_at=update.now)
        occupied.update(free)
        count += not urgent


def _recover(update: StateUpdate, keys: list[str]) -> None:
    """Publish the recoveries that are due.

    A minion that was prepared for several events recovers once, when all of them are over for it.
    """
    due = {key: minions for key in keys if (minions := _due_to_recover(update, update.maintenances[key]))}
    if not due:
        return
    waiting = {
        minion
        for maintenance in update.maintenances.values()
        for minion, member in maintenance.members.items()
        if member.doing == "recover" or (member.record and member.listed)
    }
    for key, minions in due.items():
        free = [minion for minion in minions if minion not in waiting]
        if free:
            token = update.publish("recover", free, key, event_id=update.maintenances[key].event_id)
            for minion in free:
                update.set_member(key, minion, doing="recover", job=token, asked_at=update.now)
            waiting.update(free)


def _next_work(update: StateUpdate, maintenance: Maintenance) -> float:
    """Return the time of the next examination of a maintenance that does not change."""
    if _due_to_prepare(update, maintenance):
        return update.now + _QUEUE_INTERVAL
    times = [update.now + _MAX_IDLE]
    for member in maintenance.members.values():
        times += [
            time
            for time in (member.next_at, member.asked_at + update.settings.answer if member.job else math.inf)
            if time > update.now
        ]
    return min(times)


def is_to_prepare(member: Member) -> bool:
    """Return True if the minion is not prepared and can still prepare."""
    return (
        member.status == SCHEDULED
        and not member.is_prepared
        and not member.not_selected
        and may_retry(member.outcome, member.tries)
    )


def _due_to_prepare(update: StateUpdate, maintenance: Maintenance) -> list[str]:
    if not any(map(is_to_prepare, maintenance.members.values())):
        return []
    return [
        minion
        for minion, member in maintenance.members.items()
        if is_to_prepare(member)
        and not member.job
        and member.listed
        and member.next_at <= update.now
        and _is_reachable(update, minion)
    ]


def _is_reachable(update: StateUpdate, minion: str) -> bool:
    known = update.minion(minion)
    return minion in update.names.accepted and known.silent <= 1 and update.credit(minion) >= 1.0


def may_be_over(member: Member) -> bool:
    """Return True if the minion should check whether the event is over for it.

    For a started event the first answer without it suffices, because the minion reads further documents
    itself. It does not wait a minute for an event that came back.
    """
    return not member.present or (not member.listed and member.status != SCHEDULED and not member.returned)


def _due_to_recover(update: StateUpdate, maintenance: Maintenance) -> list[str]:
    return [
        minion
        for minion, member in maintenance.members.items()
        if member.record
        and may_be_over(member)
        and not member.job
        and member.next_at <= update.now
        and _is_reachable(update, minion)
    ]


def _is_starting(update: StateUpdate, maintenance: Maintenance) -> bool:
    """Return True if the maintenance counts towards at_once."""
    return not removes_vm(maintenance.event_type) and any(
        member.doing == "prepare" and update.now - member.asked_at < _STARTING
        for member in maintenance.members.values()
    )


def _urgency(maintenance: Maintenance, key: str, at: float) -> Urgency:
    return Urgency(maintenance.event_type, seconds_left(maintenance, at), key)


def seconds_left(maintenance: Maintenance, at: float) -> float:
    """Return the seconds until ``NotBefore``, 0 without one; ``at`` is Unix time."""
    not_before = parse_time(maintenance.not_before)
    return 0.0 if not_before is None else not_before.timestamp() - at
