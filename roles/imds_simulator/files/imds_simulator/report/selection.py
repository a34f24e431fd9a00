# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Chooses the VMs, events and facts that a report shows, and states which it leaves out."""

from __future__ import annotations

from typing import NamedTuple

from .facts import ERRORS, SEEN, Fact
from .run import Event, Run
from .wording import counted

MAX_VMS = 50
MAX_EVENTS = 200
MAX_FACTS = 2_000
MAX_FAULTS = 100


class Selection(NamedTuple):
    """The shown part of a run. ``left_out`` has one sentence for each kind of data that is not shown."""

    vms: tuple[str, ...]
    events: tuple[Event, ...]
    facts: tuple[Fact, ...]
    left_out: tuple[str, ...]


def select(run: Run, facts: list[Fact]) -> Selection:
    """Return the part of ``run`` with its ``facts`` that a report of a bounded size can show."""
    left_out = _dropped(run)
    events = tuple(sorted(run.events, key=lambda each: each.appeared))
    if len(events) > MAX_EVENTS:
        left_out.append(f"{counted(len(events) - MAX_EVENTS, 'later event')} of {len(events):,}: not shown.")
        events = events[:MAX_EVENTS]
    known = {each.name for each in run.events}
    unknown = {fact.event for fact in facts if fact.event} - known
    if unknown:
        left_out.append(
            f"{counted(len(unknown), 'event')} that ended long ago: the log has steps of them, "
            "but the simulator no longer has the events; the picture does not show them."
        )
    vms = _vms(run, events, facts)
    if len(vms) < len(run.groups):
        left_out.append(
            f"{counted(len(run.groups) - len(vms), 'VM')} of {len(run.groups):,}: not shown; the report prefers VMs "
            "that an event affects, then VMs with approvals, notes or errors."
        )
    return Selection(vms, events, _facts(events, vms, facts, run, left_out), tuple(left_out))


def _dropped(run: Run) -> list[str]:
    left_out = []
    if run.dropped_lines:
        left_out.append(
            f"{counted(run.dropped_lines, 'older line')} of the log: the simulator no longer had "
            f"{'it' if run.dropped_lines == 1 else 'them'} when the report was made. Steps can be missing."
        )
    if run.dropped_answers:
        left_out.append(
            f"{counted(run.dropped_answers, 'older request')}: the simulator no longer had "
            f"{'it' if run.dropped_answers == 1 else 'them'}. Errors can be missing; the counts are complete."
        )
    return left_out


def _vms(run: Run, events: tuple[Event, ...], facts: list[Fact]) -> tuple[str, ...]:
    """Return the VMs to show, in the order of the scenario."""
    if len(run.groups) <= MAX_VMS:
        return tuple(run.groups)
    ranked = dict.fromkeys(vm for event in events for vm in event.vms)
    ranked.update(dict.fromkeys(fact.vm for fact in facts if fact.kind not in (SEEN, ERRORS)))
    ranked.update(dict.fromkeys(fact.vm for fact in facts if fact.kind == ERRORS))
    chosen = set([vm for vm in ranked if vm in run.groups][:MAX_VMS])
    return tuple(vm for vm in run.groups if vm in chosen)


def _facts(
    events: tuple[Event, ...], vms: tuple[str, ...], facts: list[Fact], run: Run, left_out: list[str]
) -> tuple[Fact, ...]:
    names, shown_vms, known = {each.name for each in events}, set(vms), {each.name for each in run.events}
    chosen = [
        fact
        for fact in facts
        if (not fact.event or fact.event in names or fact.event not in known)
        and (fact.vm in shown_vms or fact.vm not in run.groups)
    ]
    for kind in (SEEN, ERRORS):
        if len(chosen) > MAX_FACTS:
            fewer = [fact for fact in chosen if fact.kind != kind]
            what = "first view" if kind == SEEN else "group"
            left_out.append(
                f"{counted(len(chosen) - len(fewer), what)} {'of events' if kind == SEEN else 'of errors'}: not shown."
            )
            chosen = fewer
    if len(chosen) > MAX_FACTS:
        left_out.append(f"{counted(len(chosen) - MAX_FACTS, 'later step')} of {len(chosen):,}: not shown.")
    return tuple(chosen[:MAX_FACTS])
