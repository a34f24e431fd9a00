# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Decides when an event is approved, through which minion, and why it is not.

The engine approves an event through a prepared minion that the event affects. All VMs that any of
these minions names must be ready, because the backends of IMDS may differ. A compromised minion can
therefore withhold an approval. It cannot cause one.
"""

from __future__ import annotations

from typing import NamedTuple

from azure_scheduled_events.release import (
    ONE_DOCUMENT,
    TYPES_DIFFER,
    UNKNOWN_VALUES,
    Obstacle,
    Report,
    approver_order,
    obstacles,
    release_set,
)

from . import polling
from .answer_handling import refuse_approval
from .answers import SCHEDULED, STARTED
from .settings import APPROVE
from .state import Approval, Maintenance, Member, Minion, State
from .state_update import StateUpdate

# seconds between two examinations of an unchanged maintenance
_EXAMINE_INTERVAL = 5.0
# seconds to wait for the answer to an approval, and then for the start of the event, before the
# engine approves through another minion
_APPROVAL_TIMEOUT = 30.0
_START_TIMEOUT = 120.0
# codes of the obstacles of an event that an order of a person overcomes
_OVERCOME = UNKNOWN_VALUES | {TYPES_DIFFER}


class Release(NamedTuple):
    """An approval that may be sent, or not yet.

    Attributes:
        reports: what is known of each VM, by VM key.
        vms: the VMs that it releases: names by VM key.
        obstacles: why no rule sends it.
    """

    reports: dict[str, Report]
    vms: dict[str, str]
    obstacles: list[Obstacle]

    @property
    def types(self) -> frozenset[str]:
        """Return the types that the minions list for the event."""
        return frozenset(
            report.sighting.event.event_type for report in self.reports.values() if report.sighting is not None
        )

    def is_permitted(self, forced: bool) -> bool:
        """Return True if it may be sent; an order of a person overcomes some obstacles."""
        return bool(self.vms) and not any(
            not forced or (not obstacle.vm and obstacle.code not in _OVERCOME) for obstacle in self.obstacles
        )


def release_of(state: State | StateUpdate, maintenance: Maintenance) -> Release:
    """Return what an approval of the event releases, and the obstacles to it."""
    vms = _vms_of(maintenance)
    if not vms:
        return Release({}, vms, [])
    owners = {vm: owner for vm in vms if (owner := state.names.minion_of(vm)) is not None}
    reports = {vm: report_of(state, maintenance, vm, owner) for vm, owner in owners.items()}
    own = next((report.sighting.event for report in reports.values() if report.sighting is not None), None)
    for minion, member in maintenance.members.items():
        if member.sighting is not None and owners.get(state.names.vm_of(minion) or "") != minion:
            # its VMs count, but a false status or type must not withhold the approval of another minion's event
            event = (own or member.sighting.event)._replace(status=SCHEDULED, resources=member.resources)
            reports[f"minion {minion}"] = Report(member.sighting._replace(event=event), False)
    without_report, is_covered = _vms_without_minion(state) if len(owners) < len(vms) else ("", False)
    found = obstacles(reports, without_report, is_covered)
    if state.unwritten:
        found.insert(0, Obstacle("unwritten", f"the engine cannot write its state: {state.unwritten}"))
    return Release(reports, vms, found)


def _vms_of(maintenance: Maintenance) -> dict[str, str]:
    """Return the VMs that an approval releases: names by VM key."""
    return release_set(Report(member.sighting, False) for member in maintenance.members.values())


def _vms_without_minion(state: State | StateUpdate) -> tuple[str, bool]:
    """Return why VMs without a minion are not ready, and whether unknown_resources covers them."""
    if state.settings.unknown_resources != APPROVE:
        return "no minion has this VM", False
    nameless = state.names.nameless()
    shown = ", ".join(nameless[:5]) + (f" and {len(nameless) - 5} more" if len(nameless) > 5 else "")
    return f"it may be the VM of a minion whose VM is not known: {shown}", not nameless


def report_of(state: State | StateUpdate, maintenance: Maintenance, vm: str, owner: str) -> Report:
    """Return what is known of a VM about the event; ``vm`` is its key, ``owner`` its minion."""
    member = maintenance.members.get(owner, Member())
    known = state.minions.get(owner, Minion())
    obstacle = (
        _conflict(state, vm, owner, known, member)
        or _answer_problem(owner, known, member)
        or _unprepared(owner, known, member)
        or (ONE_DOCUMENT if member.listed and known.documents < 2 else None)
    )
    return Report(member.sighting, member.is_prepared, obstacle)


def _conflict(state: State | StateUpdate, vm: str, owner: str, known: Minion, member: Member) -> Obstacle | None:
    """Return why even a prepared VM is not ready."""
    rivals = state.names.rivals(vm)
    if rivals:
        minions = ", ".join([owner, *rivals])
        return Obstacle("disputed", f"minions {minions} report that this is their VM; set azure_events: mapping")
    if known.interrupted and member.status != STARTED:
        return Obstacle("interrupted", f"another event has started on minion {owner}")
    return None


def _answer_problem(owner: str, known: Minion, member: Member) -> Obstacle | None:
    # a prepared minion that does not answer is polled before the approval
    if not member.is_prepared and (known.silent > 1 or known.answered_at == float("-inf")):
        return Obstacle("silent", f"minion {owner} does not answer")
    if known.complaint:
        return Obstacle("odd_answer", f"minion {owner}: {known.complaint}")
    if known.unavailable:
        return Obstacle("unavailable", f"minion {owner}: {known.unavailable}")
    return None


def _unprepared(owner: str, known: Minion, member: Member) -> Obstacle | None:
    """Return why a minion that lists the event as Scheduled is not prepared."""
    if member.is_prepared or not member.listed or member.status != SCHEDULED:
        return None
    if member.not_selected:
        return Obstacle("not_selected", f"minion {owner}: its selection excludes the event ({member.not_selected})")
    if member.doing == "prepare" or known.working:
        return Obstacle("preparing", f"minion {owner} prepares")
    if member.outcome:
        return Obstacle(member.outcome, f"minion {owner}: {': '.join(filter(None, (member.outcome, member.reason)))}")
    return Obstacle("queued", f"minion {owner} was not asked to prepare yet")


def withheld(maintenance: Maintenance, release: Release) -> str:
    """Return why the event is not approved, or ""."""
    reasons = list(map(str, release.obstacles))
    if maintenance.hold is not None:
        reasons.insert(0, f"held by {maintenance.hold.by} since {maintenance.hold.at}")
    if not reasons:
        reasons = [f"{minion}: {reason}" for minion, (_at, reason) in sorted(maintenance.refusals.items())]
    return "; ".join(reasons)


def start_due(update: StateUpdate) -> None:
    """Send the approvals that are due."""
    for key, maintenance in update.maintenances.items():
        if maintenance.examine or update.now - maintenance.examined_at >= _EXAMINE_INTERVAL:
            update.set_maintenance(key, examine=False, examined_at=update.now)
            _refer(update, maintenance)
            _examine(update, key, update.maintenances[key])


def _refer(update: StateUpdate, maintenance: Maintenance) -> None:
    """Poll the minions that other minions name and that do not list the event."""
    for vm in _vms_of(maintenance):
        owner = update.names.minion_of(vm)
        if owner is not None and not (owner in maintenance.members and maintenance.members[owner].present):
            polling.poll_referred(update, owner)


def _examine(update: StateUpdate, key: str, maintenance: Maintenance) -> None:
    approval = maintenance.approval
    if approval is not None and not _is_lost(update, maintenance, approval):
        return
    if approval is not None:
        polling.request_poll(update, approval.minion)
        refuse_approval(
            update,
            key,
            approval.minion,
            "no answer" if not approval.outcome else f"it answered {approval.outcome}, but the event did not start",
        )
        maintenance = update.maintenances[key]
    if maintenance.hold is not None and maintenance.forced is None:
        return
    if not any(member.is_prepared for member in maintenance.members.values()):
        return
    release = release_of(update, maintenance)
    _poll_unconfirmed(update, release)
    if maintenance.forced is not None and not maintenance.forced.covers(release.types, release.vms):
        update.set_maintenance(key, forced=None)
        update.save(key)
    if _is_permitted(update.maintenances[key], release):
        _approve(update, key, release)


def _poll_unconfirmed(update: StateUpdate, release: Release) -> None:
    """Poll the minions that have read one document only."""
    for vm, report in release.reports.items():
        owner = update.names.minion_of(vm)
        if owner is not None and report.obstacle == ONE_DOCUMENT:
            polling.request_poll(update, owner)


def _approve(update: StateUpdate, key: str, release: Release) -> None:
    """Approve through the first minion that can send the approval."""
    maintenance = update.maintenances[key]
    for vm in approver_order(release.reports):
        minion = update.names.minion_of(vm)
        if minion is None or maintenance.refusals.get(minion, (update.now, ""))[0] > update.now:
            continue
        if _may_approve(update, maintenance, minion):
            if maintenance.forced is not None or _has_recent_answers(update, maintenance, release):
                _send(update, key, minion, release)
            return


def _is_permitted(maintenance: Maintenance, release: Release) -> bool:
    """Return True if the obstacles and the orders of operators permit the approval."""
    order = maintenance.forced
    if order is not None and order.covers(release.types, release.vms):
        return release.is_permitted(forced=True)
    return maintenance.hold is None and release.is_permitted(forced=False)


def _has_recent_answers(update: StateUpdate, maintenance: Maintenance, release: Release) -> bool:
    """Return True if every minion of the event has answered recently, and poll the others."""
    late = update.now - update.settings.answer
    owners = {update.names.minion_of(vm) for vm in release.vms} - {None}
    old = [
        owner
        for owner in owners
        if owner is not None and max(update.minion(owner).answered_at, maintenance.members[owner].done_at) < late
    ]
    for owner in old:
        polling.request_poll(update, owner)
    return not old


def _is_lost(update: StateUpdate, maintenance: Maintenance, approval: Approval) -> bool:
    """Return True if the approval was not answered, or had no effect and others can approve."""
    if not approval.outcome:
        return update.now - approval.asked_at >= _APPROVAL_TIMEOUT
    affected = maintenance.affected()
    waiting = [minion for minion in affected if maintenance.members[minion].status == SCHEDULED]
    others = [
        minion
        for minion in waiting
        if minion != approval.minion
        and _may_approve(update, maintenance, minion)
        and minion not in maintenance.refusals
    ]
    return bool(others) and len(waiting) == len(affected) and update.now - approval.asked_at >= _START_TIMEOUT


def _may_approve(update: StateUpdate, maintenance: Maintenance, minion: str) -> bool:
    member = maintenance.members.get(minion, Member())
    return (
        not update.names.complaint(minion)
        and update.names.vm_of(minion) is not None
        and update.credit(minion) >= 1.0
        and member.listed
        and member.is_prepared
    )


def _send(update: StateUpdate, key: str, minion: str, release: Release) -> None:
    maintenance = update.maintenances[key]
    forced = maintenance.forced
    token = update.publish(
        "approve_prepared",
        [minion],
        key,
        event_id=maintenance.event_id,
        resources=list(release.vms.values()),
        forced=forced is not None,
        # without an order all minions list the same type
        event_type=None if forced is not None else min(release.types),
    )
    by, at = (forced.by, forced.at) if forced is not None else ("engine", "")
    approval = Approval(minion, by, at, forced is not None, job=token, asked_at=update.now)
    update.set_maintenance(key, approval=approval)
