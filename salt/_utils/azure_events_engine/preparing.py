# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Ask minions to prepare and to recover: one job per event and step, for all minions that are due."""

from __future__ import annotations

import math
from functools import partial

from . import looking
from .answers import PREPARED, SCHEDULED, is_ending, urgency
from .state import Maintenance, Member
from .taking import may_be_tried
from .turn import Turn

# a preparation that was asked for longer ago is no reason to make others wait: jobs and their first
# returns burden the master, not the steps
_STARTING = 10.0
# seconds after which a maintenance is looked at though nothing has changed: one that waits for its
# turn, and others
_QUEUE = 0.5
_LONGEST_IDLE = 5.0


def ask(turn: Turn) -> None:
    """Ask for the preparations and recoveries that are due."""
    keys = [key for key, maintenance in turn.maintenances.items() if maintenance.work_at <= turn.now]
    _ask_late(turn, keys)
    _prepare(turn, keys)
    _recover(turn, keys)
    for key in keys:
        turn.set_maintenance(
            key, work_at=_next_work(turn, turn.maintenances[key]), changed=turn.maintenances[key].changed
        )


def _ask_late(turn: Turn, keys: list[str]) -> None:
    """Ask the minions that have not returned in time."""
    for key in keys:
        for minion, member in turn.maintenances[key].members.items():
            if member.job and turn.now - member.asked_at >= turn.settings.answer:
                looking.want_working(turn, minion)


def _prepare(turn: Turn, keys: list[str]) -> None:
    """The most urgent event comes first."""
    due = [(key, minions) for key in keys if (minions := _due_to_prepare(turn, turn.maintenances[key]))]
    if not due:
        return
    occupied = {
        minion
        for one in turn.maintenances.values()
        for minion, member in one.members.items()
        if member.doing == "prepare"
    }
    count = sum(map(partial(_is_starting, turn), turn.maintenances.values()))
    due.sort(key=lambda item: _urgency(turn.maintenances[item[0]], item[0]))
    for key, minions in due:
        maintenance = turn.maintenances[key]
        urgent = is_ending(maintenance.event_type)
        # a minion prepares for one event at a time; what takes its VM away does not wait for that
        free = [minion for minion in minions if urgent or minion not in occupied]
        if not free or (count >= turn.settings.at_once and not urgent):
            continue
        token = turn.ask("prepare", free, key, event_id=maintenance.event_id)
        for minion in free:
            turn.set_member(key, minion, doing="prepare", job=token, asked_at=turn.now)
        occupied.update(free)
        count += 1


def _recover(turn: Turn, keys: list[str]) -> None:
    """A minion that was prepared for several events recovers once, when all of them are over for it."""
    due = {key: minions for key in keys if (minions := _due_to_recover(turn, turn.maintenances[key]))}
    if not due:
        return
    waiting = {
        minion
        for maintenance in turn.maintenances.values()
        for minion, member in maintenance.members.items()
        if member.doing == "recover" or (member.record and member.listed and not member.absent)
    }
    for key, minions in due.items():
        free = [minion for minion in minions if minion not in waiting]
        if free:
            token = turn.ask("recover", free, key, event_id=turn.maintenances[key].event_id)
            for minion in free:
                turn.set_member(key, minion, doing="recover", job=token, asked_at=turn.now)
            waiting.update(free)


def _next_work(turn: Turn, maintenance: Maintenance) -> float:
    """When to look at a maintenance again in which nothing changes."""
    if _due_to_prepare(turn, maintenance):
        return turn.now + _QUEUE
    times = [turn.now + _LONGEST_IDLE]
    for member in maintenance.members.values():
        times += [
            time
            for time in (member.next_at, member.asked_at + turn.settings.answer if member.job else math.inf)
            if time > turn.now
        ]
    return min(times)


def is_to_prepare(member: Member) -> bool:
    """Return True if the minion is not prepared, and may still become so."""
    return (
        member.listed
        and member.status == SCHEDULED
        and member.record != PREPARED
        and not member.not_selected
        and may_be_tried(member.outcome, member.tries)
    )


def _due_to_prepare(turn: Turn, maintenance: Maintenance) -> list[str]:
    if not any(map(is_to_prepare, maintenance.members.values())):
        return []
    return [
        minion
        for minion, member in maintenance.members.items()
        if is_to_prepare(member)
        and not member.job
        and member.absent == 0
        and member.next_at <= turn.now
        and _is_reachable(turn, minion)
    ]


def _is_reachable(turn: Turn, minion: str) -> bool:
    known = turn.minion(minion)
    return minion in turn.names.accepted and known.silent <= 1 and turn.credit(minion) >= 1.0


def may_be_over(member: Member) -> bool:
    """Return True if the minion should see by itself whether the event is over: at once where it has started and is now absent for the first time."""
    return not member.listed or (member.absent > 0 and member.status != SCHEDULED and member.returns == 0)


def _due_to_recover(turn: Turn, maintenance: Maintenance) -> list[str]:
    return [
        minion
        for minion, member in maintenance.members.items()
        if member.record
        and may_be_over(member)
        and not member.job
        and member.next_at <= turn.now
        and _is_reachable(turn, minion)
    ]


def _is_starting(turn: Turn, maintenance: Maintenance) -> bool:
    return any(
        member.doing == "prepare" and turn.now - member.asked_at < _STARTING for member in maintenance.members.values()
    )


def _urgency(maintenance: Maintenance, key: str) -> tuple[int, str, str]:
    return urgency(maintenance.event_type, maintenance.not_before, key)
