# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The rows of the runner's ``status`` (one for each event and VM) and ``fleet`` (one for each minion)."""

from __future__ import annotations

from typing import Any

from azure_scheduled_events.identity import vm_key

from .answers import printable
from .approvals import release_of, report_of, withheld
from .progress import DRAINING, HAS_STARTED
from .state import Maintenance, Member, State
from .state_update import StateUpdate

Row = dict[str, Any]


def event_rows(state: State | StateUpdate, event_key: str = "") -> list[Row]:
    """Return one row for each event and VM, or those of one event."""
    return [
        row
        for key, maintenance in [*sorted(state.maintenances.items()), *state.over.items()]
        if event_key in ("", key)
        for row in _rows(state, maintenance)
    ]


def minion_rows(state: State | StateUpdate) -> list[Row]:
    """Return one row for each minion that takes part."""
    events: dict[str, list[str]] = {}
    for maintenance in state.maintenances.values():
        for minion, member in maintenance.members.items():
            if member.present:
                events.setdefault(minion, []).append(maintenance.event_id)
    rows = []
    for minion in sorted(state.names.accepted):
        known = state.minions.get(minion)
        record_answer = known is not None and known.answered_at != float("-inf")
        rows.append(
            {
                "minion": minion,
                "vm": state.names.vm_of(minion),
                "name_from": state.names.how(minion) or None,
                "answered_seconds_ago": round(state.now - known.answered_at)
                if known is not None and record_answer
                else None,
                "problem": _problem(state, minion),
                "events": sorted(events.get(minion, [])),
            }
        )
    return rows


def _problem(state: State | StateUpdate, minion: str) -> str:
    known = state.minions.get(minion)
    refused = state.names.complaint(minion)
    rivals = state.names.rivals(state.names.vm_of(minion) or "")
    if rivals:
        return f"minions {', '.join(rivals)} report that they are the same VM"
    if refused or known is None:
        return refused or "not asked yet"
    if known.complaint:
        return known.complaint
    if known.silent > 1:
        return "does not answer"
    if known.left_out:
        return f"events with IDs that are too long or not printable are left out: {known.left_out}"
    return known.unavailable


def _rows(state: State | StateUpdate, maintenance: Maintenance) -> list[Row]:
    release = release_of(state, maintenance)
    vms = dict(release.vms)
    owners = {state.names.minion_of(vm) for vm in vms}
    for minion in sorted(set(maintenance.members) - owners):
        vm = state.names.vm_of(minion) or state.names.claims.get(minion) or minion
        vms.setdefault(vm_key(vm), vm)
    # in each row; whole it would have the reasons of all VMs
    why = printable(withheld(maintenance, release))
    common = {
        "event_id": maintenance.event_id,
        "event_type": maintenance.event_type,
        "not_before": maintenance.not_before or None,
        "approved": _approved(maintenance),
        "waiting_for": _waiting_for(maintenance),
        "withheld": None if maintenance.is_over or maintenance.approved else why or None,
    }
    if not vms:
        return [{**common, "vm": None, "minion": None, "prepared": None, "why_not": None}]
    rows = []
    obstacles = {vm_key(obstacle.vm): obstacle for obstacle in release.obstacles}
    for vm, name in vms.items():
        owner = state.names.minion_of(vm)
        member = maintenance.members.get(owner or "", Member())
        record, obstacle = member.record, obstacles.get(vm)
        if vm not in release.vms and owner is not None:
            obstacle = report_of(state, maintenance, vm, owner).obstacle
        text = "" if obstacle is None else obstacle.text
        if maintenance.is_over:
            record = text = ""
        elif record and not member.present:
            text = ": ".join(filter(None, ("recover", member.outcome, member.reason)))
        rows.append({**common, "vm": name, "minion": owner, "prepared": record or None, "why_not": text or None})
    return rows


def _approved(maintenance: Maintenance) -> str | None:
    approval = maintenance.approval
    if approval is None or not approval.outcome:
        return None
    who = approval.by if not approval.forced else f"{approval.by} at {approval.at}, forced"
    return f"{approval.outcome} through {approval.minion}, ordered by {who}"


def _waiting_for(maintenance: Maintenance) -> str:
    if maintenance.is_over:
        return "nothing; it is over"
    members = maintenance.members.values()
    if not any(member.present for member in members):
        return "recovery" if any(member.record for member in members) else "the event"
    if HAS_STARTED in maintenance.announced:
        return "end"
    if maintenance.approved:
        return "start"
    if maintenance.approval is not None:
        return "answer to the approval"
    if DRAINING in maintenance.announced and all(member.is_prepared for member in members if member.present):
        return "release by the operator" if maintenance.hold is not None else "approval"
    return "preparation"
