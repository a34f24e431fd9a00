# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Decides when an event is approved, through which minion, and why it is not.

The engine approves an event through a prepared minion that the event affects. All VMs that any of
these minions names must be ready, because the backends of IMDS may differ. A compromised minion can
therefore withhold an approval. It cannot cause one.
"""

from __future__ import annotations

from typing import NamedTuple

from azure_scheduled_events.event_types import removes_vm

from . import polling
from .answer_handling import refuse_approval
from .answers import PREPARED, SCHEDULED, STARTED
from .mapping import vm_key
from .settings import APPROVE
from .state import Approval, Maintenance, Member, Minion, State
from .state_update import StateUpdate

# seconds between two examinations of an unchanged maintenance
_EXAMINE_INTERVAL = 5.0
# seconds to wait for the answer to an approval, and then for the start of the event, before the
# engine approves through another minion
_APPROVAL_TIMEOUT = 30.0
_START_TIMEOUT = 120.0


class Readiness(NamedTuple):
    """Whether one VM is ready for an approval.

    Attributes:
        vm: name as the event has it.
        minion: its minion, or "".
        code: "prepared", "covered", or why it is not ready.
        text: the same as a sentence, with the minion's answer.
    """

    vm: str
    minion: str
    ok: bool
    code: str
    text: str


def required(maintenance: Maintenance) -> dict[str, str]:
    """Return the VMs that must be ready before the event is approved: names by VM key."""
    lists = dict.fromkeys(maintenance.members[minion].resources for minion in maintenance.affected())
    found: dict[str, str] = {}
    for resources in lists:
        for name in resources:
            found.setdefault(vm_key(name), name)
    return found


def readiness(state: State | StateUpdate, maintenance: Maintenance, vm: str, name: str) -> Readiness:
    """Return whether a VM is ready, and if not, the latest answer of its minion.

    ``vm`` is the key of the VM, ``name`` its name as the event has it.
    """
    owner = state.names.minion_of(vm)
    if owner is None:
        return _readiness_without_minion(state, name)
    known = state.minions.get(owner)
    member = maintenance.members.get(owner)
    problem = _conflict(state, vm, owner, known, member)
    if problem is None and member is not None and _is_prepared(member):
        return Readiness(name, owner, True, "prepared", "prepared")
    code, text = problem or _minion_problem(owner, known) or _member_problem(owner, known, member)
    return Readiness(name, owner, False, code, text)


def _conflict(
    state: State | StateUpdate, vm: str, owner: str, known: Minion | None, member: Member | None
) -> tuple[str, str] | None:
    """Return why even a prepared VM is not ready, as a code and a text, or None."""
    rivals = state.names.rivals(vm)
    if rivals:
        minions = ", ".join([owner, *rivals])
        return "disputed", f"minions {minions} report that this is their VM; set azure_events: mapping"
    if known is not None and known.interrupted and not (member is not None and member.status == STARTED):
        return "interrupted", f"another event has started on minion {owner}"
    return None


def _is_prepared(member: Member) -> bool:
    sighting = member.sighting
    return (
        member.record == PREPARED
        and sighting is not None
        and sighting.listed
        and sighting.readable
        and sighting.event.status == SCHEDULED
    )


def _minion_problem(owner: str, known: Minion | None) -> tuple[str, str] | None:
    """Return the problem of the minion's answers, as a code and a text, or None."""
    if known is None or known.silent > 1 or known.answered_at == float("-inf"):
        return "silent", f"minion {owner} does not answer"
    if known.complaint:
        return "odd_answer", f"minion {owner}: {known.complaint}"
    if known.unavailable:
        return "unavailable", f"minion {owner}: {known.unavailable}"
    return None


def _member_problem(owner: str, known: Minion | None, member: Member | None) -> tuple[str, str]:
    """Return why a minion that answers is not prepared, as a code and a text."""
    if member is None or member.sighting is None or not member.sighting.listed:
        return "not_listed", f"the IMDS of minion {owner} does not list the event"
    if not member.sighting.readable:
        return "unreadable", f"the IMDS of minion {owner} does not give the VMs of the event in readable form"
    if member.status == STARTED:
        return "started", "the event has started there"
    if member.not_selected:
        return "not_selected", f"minion {owner}: its selection excludes the event ({member.not_selected})"
    if member.doing == "prepare" or (known is not None and known.working):
        return "preparing", f"minion {owner} prepares"
    if member.outcome:
        return member.outcome, f"minion {owner}: {': '.join(filter(None, (member.outcome, member.reason)))}"
    return "queued", f"minion {owner} was not asked to prepare yet"


def _readiness_without_minion(state: State | StateUpdate, name: str) -> Readiness:
    if state.settings.unknown_resources != APPROVE:
        return Readiness(name, "", False, "no_minion", "no minion has this VM")
    nameless = state.names.nameless()
    if nameless:
        shown = ", ".join(nameless[:5]) + (f" and {len(nameless) - 5} more" if len(nameless) > 5 else "")
        return Readiness(name, "", False, "no_minion", f"it may be the VM of a minion whose VM is not known: {shown}")
    return Readiness(name, "", True, "covered", "no minion has this VM; unknown_resources is approve")


def withheld(state: State | StateUpdate, maintenance: Maintenance) -> tuple[str, list[Readiness]]:
    """Return why the event is not approved, or "", and the readiness of its VMs."""
    readies = [readiness(state, maintenance, vm, name) for vm, name in required(maintenance).items()]
    reasons = [f"{ready.vm}: {ready.text}" for ready in readies if not ready.ok]
    if maintenance.hold is not None:
        reasons.insert(0, f"held by {maintenance.hold.by} since {maintenance.hold.at}")
    if maintenance.unrecorded:
        reasons.insert(0, f"the approval cannot be recorded: {maintenance.unrecorded}")
    if not reasons:
        reasons = [f"{minion}: {reason}" for minion, (_at, reason) in sorted(maintenance.refusals.items())]
    return "; ".join(reasons), readies


def ranked(maintenance: Maintenance, state: State | StateUpdate) -> list[str]:
    """Return the minions that the event affects, those first that most others name as affected."""
    affected = maintenance.affected()
    named: dict[str, int] = {}
    lists: dict[tuple[str, ...], int] = {}
    for minion in affected:
        resources = maintenance.members[minion].resources
        lists[resources] = lists.get(resources, 0) + 1
    for resources, count in lists.items():
        for vm in set(map(vm_key, resources)):
            owner = state.names.minion_of(vm)
            if owner is not None:
                named[owner] = named.get(owner, 0) + count
    return sorted(affected, key=lambda minion: (-named.get(minion, 0), minion))


def start_due(update: StateUpdate) -> None:
    """Record the approvals that are due. They are sent once they are on disk."""
    for key, maintenance in update.maintenances.items():
        if maintenance.examine or update.now - maintenance.examined_at >= _EXAMINE_INTERVAL:
            update.set_maintenance(key, examine=False, examined_at=update.now)
            _refer(update, update.maintenances[key])
            _examine(update, key, update.maintenances[key])


def send(update: StateUpdate, key: str) -> None:
    """Send an approval that is on disk."""
    maintenance = update.maintenances.get(key)
    if maintenance is None or maintenance.approval is None or maintenance.approval.job or maintenance.approved:
        return
    approval = maintenance.approval
    if not _may_approve(update, maintenance, approval.minion):
        refuse_approval(update, key, approval.minion, "it can no longer approve, or was sent too many jobs")
        return
    vms = _vms_to_release(update, maintenance, approval.forced)
    if vms is None or (maintenance.hold is not None and not approval.forced):
        refuse_approval(update, key, approval.minion, "something has changed since")
        return
    token = update.publish("approve_prepared", [approval.minion], key, event_id=maintenance.event_id, resources=vms)
    update.set_maintenance(key, approval=approval._replace(job=token, asked_at=update.now), unrecorded="")


def _refer(update: StateUpdate, maintenance: Maintenance) -> None:
    """Poll the minions that other minions name and that do not list the event."""
    for vm in required(maintenance):
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
    if not any(member.record == PREPARED for member in maintenance.members.values()):
        return
    if _vms_to_release(update, maintenance, maintenance.forced is not None) is None:
        return
    for minion in ranked(maintenance, update):
        if maintenance.refusals.get(minion, (update.now, ""))[0] <= update.now and _may_approve(
            update, maintenance, minion
        ):
            if maintenance.forced is not None or _has_recent_answers(update, maintenance):
                _record(update, key, minion)
            return


def _has_recent_answers(update: StateUpdate, maintenance: Maintenance) -> bool:
    """Return True if every minion of the event has answered recently, and poll the others."""
    late = update.now - update.settings.answer
    owners = {update.names.minion_of(vm) for vm in required(maintenance)} - {None}
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
        return approval.job != 0 and update.now - approval.asked_at >= _APPROVAL_TIMEOUT
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
    return (
        not update.names.complaint(minion)
        and update.names.vm_of(minion) is not None
        and update.credit(minion) >= 1.0
        and _is_prepared(maintenance.members.get(minion, Member()))
    )


def _vms_to_release(update: StateUpdate, maintenance: Maintenance, forced: bool) -> list[str] | None:
    """Return the VMs that an approval may release, or None if one of them is not ready."""
    vms = required(maintenance)
    if not forced:
        for vm, name in vms.items():
            if not readiness(update, maintenance, vm, name).ok:
                return None
    return list(vms.values())


def _record(update: StateUpdate, key: str, minion: str) -> None:
    maintenance = update.maintenances[key]
    forced = maintenance.forced
    by, at = (forced.by, forced.at) if forced is not None else ("engine", "")
    update.set_maintenance(key, approval=Approval(minion, by, at, forced is not None, asked_at=update.now))
    update.save(key, needed=True)


def is_lost(update: StateUpdate, maintenance: Maintenance, silence: float) -> bool:
    """Return True if the event removes VMs, and none of its minions answered for ``silence`` seconds."""
    return removes_vm(maintenance.event_type) and update.now - maintenance.last_answer_at >= silence
