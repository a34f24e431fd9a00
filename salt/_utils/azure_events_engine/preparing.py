# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Ask minions to prepare and to recover: one job per event and step, for all minions that are due."""

from __future__ import annotations

from .answers import PREPARED, SCHEDULED, is_ending, urgency
from .state import Maintenance, Member
from .taking import may_be_tried
from .turn import Turn

# a preparation that was asked for longer ago is no reason to make others wait
_STARTING = 60.0


def prepare(turn: Turn) -> None:
    """Ask for the preparations that are due, the most urgent event first."""
    due = [(key, minions) for key, maintenance in turn.maintenances.items() if (minions := _due_to_prepare(turn, maintenance))]
    if not due:
        return
    under_way = [maintenance for maintenance in turn.maintenances.values() if _is_starting(turn, maintenance)]
    count = len(under_way)
    occupied = {minion for maintenance in under_way for minion, member in maintenance.members.items() if member.doing == "prepare"}
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


def recover(turn: Turn) -> None:
    """Ask the minions that have a record of an event that is over for them."""
    for key, maintenance in turn.maintenances.items():
        due = [minion for minion, member in maintenance.members.items() if _is_due_to_recover(turn, minion, member)]
        if due:
            token = turn.ask("recover", due, key, event_id=maintenance.event_id)
            for minion in due:
                turn.set_member(key, minion, doing="recover", job=token, asked_at=turn.now)


def is_queued(maintenance: Maintenance) -> bool:
    """Return True if a minion should prepare and was not asked yet."""
    return any(is_to_prepare(member) and not member.outcome and not member.job for member in maintenance.members.values())


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
    if maintenance.over_at is not None or not any(map(is_to_prepare, maintenance.members.values())):
        return []
    return [
        minion
        for minion, member in maintenance.members.items()
        if is_to_prepare(member) and not member.job and member.absent == 0 and member.next_at <= turn.now and _is_reachable(turn, minion)
    ]


def _is_reachable(turn: Turn, minion: str) -> bool:
    known = turn.minion(minion)
    return minion in turn.names.accepted and known.silent == 0


def _is_due_to_recover(turn: Turn, minion: str, member: Member) -> bool:
    over = not member.listed or member.absent > 0
    return over and member.record != "" and not member.job and member.next_at <= turn.now and _is_reachable(turn, minion)


def _is_starting(turn: Turn, maintenance: Maintenance) -> bool:
    return any(member.doing == "prepare" and turn.now - member.asked_at < _STARTING for member in maintenance.members.values())


def _urgency(maintenance: Maintenance, key: str) -> tuple[int, str, str]:
    return urgency(maintenance.event_type, maintenance.not_before, key)
