# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Coordinates hosts whose hook runners prepare and recover: approvals, next reads, and the end.

Pure: `next_state` makes a new state of the last one and of the results of a round. The state is plain data, because
Ansible keeps it in a fact.
"""

from __future__ import annotations

import typing as t

from ...module_utils._hook_runner_status import is_settled
from ...module_utils.azure_scheduled_events.event_types import is_chosen
from ...module_utils.azure_scheduled_events.identity import vm_key
from ...module_utils.azure_scheduled_events.release import ONE_DOCUMENT, Obstacle, Report, all_vms, obstacles
from .approval_attempts import NOT_KNOWN, Decision, State, decision, no_attempts, senders, withheld_by
from .host_results import is_status
from .vm_hosts import hosts_by_vm, reports_by_vm, sighting_of

# seconds of a round while an event may still be approved, and afterwards at least
DECISION_ROUND = 15.0
LONGEST_ROUND = 60.0
# a run has at most about this number of rounds, because Ansible becomes slower with each
_ROUNDS = 240

Variables = t.Mapping[str, t.Any]


class Limits(t.NamedTuple):
    """The limits of a run.

    Attributes:
        patience: seconds for the whole run.
        within: seconds; later events are left to a later run.
        types: types of events; empty for all that do not only advise.
        check_mode: whether to end after the first decision.
    """

    patience: float
    within: float
    types: frozenset[str] = frozenset()
    check_mode: bool = False


def first_state(
    hosts: t.Sequence[str],
    now: float,
    arm_vms: t.Mapping[str, str] | None = None,
    of_caller: t.Mapping[str, t.Sequence[Variables]] | None = None,
) -> State:
    """Return the state before the first round, which reads all hosts without a wait.

    ``now`` is Unix time. ``arm_vms`` has the name of the VM by host, from the inventory; it takes precedence over that
    of the host itself. ``of_caller`` has the events as the caller of the run lists them, as `listings_of` returns them.
    """
    given = arm_vms or {}
    return {
        "began": now,
        "round_ends": now,
        "arm_vms": {name: given.get(name, "") for name in hosts},
        "hosts": {
            name: {
                "available": None,
                "reason": "",
                "vm": given.get(name, ""),
                "leader": "",
                "blocked": "",
                "maintenance": None,
            }
            for name in hosts
        },
        "events": {name: {} for name in hosts},
        "of_caller": of_caller or {},
        **no_attempts(),
        "read": {name: _read("nothing", [], 0.0) for name in hosts},
        "pause": 0.0,
        "over": False,
    }


def next_state(before: State, results: t.Mapping[str, Variables], now: float, limits: Limits) -> State:
    """Return the state after a round: the decisions, and what the next round reads.

    ``results`` are those of module hook_runner_info by host, of the hosts that were read. ``now`` is Unix time.
    """
    state = dict(
        before, hosts=dict(before["hosts"]), events={name: dict(own) for name, own in before["events"].items()}
    )
    for name, given in results.items():
        is_usable = not given.get("available") or is_status(given)
        result = given if is_usable else {"reason": "the result of the module is not valid; examine the host"}
        _take_host(state, name, result)
        _take_events(state, name, result, limits)
    events = _open_events(state)
    is_fresh = all(each["wait_for"] == "nothing" for each in before["read"].values())
    owners = hosts_by_vm({name: known["vm"] for name, known in state["hosts"].items()})
    decisions = [_decision(state, key, event, owners) for key, event in events.items()]
    state["withheld"] = withheld_by(before["withheld"], decisions)
    ready = [each for each in decisions if each["approve"]]
    # each VM is read once more, because a wait for others may have made its state old
    state["decisions"] = ready if is_fresh else []
    state["check_mode"] = limits.check_mode
    state["over"] = limits.check_mode or not events or now - before["began"] >= limits.patience
    involved = {
        key: {name for vm in event["resources"] for name in owners.get(vm_key(vm), ())} for key, event in events.items()
    }
    _plan_reads(state, before, involved, bool(ready) and not is_fresh, now, limits)
    return state


def _take_host(state: State, name: str, result: Variables) -> None:
    known = dict(state["hosts"][name])
    known["available"] = bool(result.get("available"))
    known["confirmed"] = bool(result.get("confirmed"))
    known["installed"] = result.get("state") != "not_installed"
    if known["available"]:
        known["vm"] = state["arm_vms"][name] or result.get("resource_name") or known["vm"]
        known.update(reason="", leader=result.get("leader") or "", maintenance=result["maintenance"])
        known["blocked"] = _blocked(result)
    else:
        known["reason"] = str(result.get("reason") or result.get("msg") or "the host was not read")
    state["hosts"][name] = known


def _blocked(result: Variables) -> str:
    """Return why no event of this host may be approved, or ""."""
    paused = result.get("paused")
    if paused:
        reason = paused.get("reason") or "no reason given"
        return f"its hook runner is paused by {paused.get('by') or 'an operator'}: {reason}"
    if result.get("dry_run"):
        return "its hook runner has dry_run: true"
    if not result.get("imds_ok"):
        return "its hook runner gets no answer of IMDS; its events may be old"
    if not result.get("records_ok"):
        return "its hook runner cannot write its records"
    return ""


def _take_events(state: State, name: str, result: Variables, limits: Limits) -> None:
    """Add the events of a result to those of the host, and note those that are over, or that its VM has left."""
    own = state["events"][name]
    if not result.get("available"):
        return
    listed = {event["key"]: event for event in result.get("events", ()) if event["affects_self"]}
    over = {event["key"]: event for event in result.get("history", ()) if event["over"]}
    for key, event in listed.items():
        if key in own or _is_due(event, limits):
            own[key] = dict(_merged(own.get(key, {}), event), is_over=False)
    # else its daemon, which has just started, may not know yet whether there is such an event, or whom it affects
    knows_all = bool(result.get("confirmed") and result.get("resource_name"))
    for key in [key for key in own if key not in listed]:
        is_over = own[key]["is_over"] or key in over or knows_all
        own[key] = dict(_merged(own[key], over.get(key, {})), is_over=is_over, listed=False, named=[])


def _is_due(event: Variables, limits: Limits) -> bool:
    if not is_chosen(event["event_type"] or "", limits.types or None):
        return False
    left = event["seconds_left"]
    return event["status"] != "Scheduled" or left is None or left <= limits.within


def _merged(known: Variables, event: Variables) -> dict[str, t.Any]:
    """Return the event with what was known before of members that it no longer has."""
    kept = ("prepared", "approved", "started", "over", "recovered", "not_before")
    merged = {**known, **event}
    merged.update({name: known.get(name) for name in kept if merged.get(name) is None})
    merged["first_not_before"] = known.get("first_not_before") or merged.get("not_before")
    if merged["prepared_state"] != "ok":
        merged["prepared"] = None
    return merged


def is_recovering(host: Variables) -> bool:
    """Return True if all events of a host are over, and it has not recovered."""
    return (host["maintenance"] or {}).get("phase") == "recovering"


def _is_open(state: State, name: str, event: Variables) -> bool:
    """Return True if the event is not over, or the host recovers after it."""
    return not event["is_over"] or is_recovering(state["hosts"][name])


def _open_events(state: State) -> dict[str, Variables]:
    """Return the events that are open on a host, by key.

    Each has the VMs that these hosts and the caller list for it.
    """
    found: dict[str, list[Variables]] = {}
    for name, own in state["events"].items():
        for key, event in own.items():
            if _is_open(state, name, event):
                found.setdefault(key, []).append(event)
    listings = {key: [*events, *state["of_caller"].get(key, ())] for key, events in found.items()}
    return {
        key: dict(events[0], resources=list(all_vms(event["resources"] for event in events).values()))
        for key, events in listings.items()
    }


def _decision(state: State, key: str, event: Variables, owners: t.Mapping[str, t.Sequence[str]]) -> Decision:
    """Return the decision about one event."""
    report_of = {name: _report(state, key, name) for name in state["hosts"]}
    reports, hosts_of = reports_by_vm(owners, report_of, sighting_of(state["of_caller"].get(key, ())))
    resources = event["resources"]
    is_decided = key in state["approved"] or not _may_start(state, key)
    if is_decided:
        withheld = state["withheld"].get(key)
        found = [] if key in state["approved"] or not withheld else [Obstacle(withheld["code"], withheld["text"])]
    elif len(all_vms([resources])) == 1:
        text = "the event affects no other VM; the policy of its hook runner decides"
        found = [Obstacle("own_policy", text, resources[0])]
    else:
        unknown = [f"{name}: {known['reason']}" for name, known in state["hosts"].items() if not known["vm"]]
        hint = f" (not known: {'; '.join(unknown)})" if unknown else ""
        found = obstacles(reports, f"no host of this play is known to be this VM{hint}")
    decided = decision(state, event, resources, senders(reports, hosts_of), found)
    return dict(decided, approve=not is_decided and not found)


def _may_start(state: State, key: str) -> bool:
    """Return True if no host has seen the event Started or over."""
    known = [own[key] for own in state["events"].values() if key in own]
    return all(event["status"] != "Started" and not event["is_over"] for event in known)


def _report(state: State, key: str, name: str) -> Report:
    """Return what the hook runner of a host says about the event of this key."""
    known, own = state["hosts"][name], state["events"][name].get(key)
    sighting = sighting_of([own])
    if own is not None and sighting is not None:
        sighting = sighting._replace(listed=own["listed"], named=frozenset(own["named"]), readable=own["readable"])
    if not known["available"]:
        return Report(sighting, False, Obstacle(NOT_KNOWN, known["reason"]))
    if known["blocked"]:
        return Report(sighting, False, Obstacle("blocked", known["blocked"]))
    if not known["confirmed"]:
        return Report(sighting, False, ONE_DOCUMENT)
    if own is None or own["prepared_state"] == "ok":
        return Report(sighting, True)
    if own["prepared_state"] == "failed":
        hooks = ", ".join(own.get("failed_hooks") or ["see the log of its hook runner"])
        return Report(sighting, False, Obstacle("not_prepared", f"the preparation failed: {hooks}"))
    waiting = f": {own['waiting']}" if own.get("waiting") else ""
    return Report(sighting, False, Obstacle("not_prepared", f"its hook runner has not prepared yet{waiting}"))


def _plan_reads(
    state: State, before: State, involved: t.Mapping[str, set[str]], confirms: bool, now: float, limits: Limits
) -> None:
    """Set what the next round reads, how long each read may wait, and the pause before the round.

    ``involved`` has the hosts of each open event.
    """
    ends = before["began"] + limits.patience
    listed = [event for own in state["events"].values() for event in own.values()]
    # nothing prepares for an event of another status, and nothing approves it
    other = {event["key"] for event in listed if event["is_over"] or event["status"] != "Scheduled"}
    undecided = [key for key in involved if key not in state["approved"] and key not in other]
    shortest = limits.patience / _ROUNDS
    length = max(DECISION_ROUND if undecided else LONGEST_ROUND, shortest)
    has_changed = _outline(before) != _outline(state)
    # hosts that return at once, such as unreachable ones, do not cause rounds without a pause
    rest = 0.0 if has_changed or confirms else max(before["round_ends"] - now, 0.0)
    state["pause"] = round(min(rest, max(ends - now, 0.0)), 1)
    state["round_ends"] = min(now + state["pause"] + length, ends)
    state["read"] = {}
    if state["over"]:
        return
    reads = {}
    for name, known in state["hosts"].items():
        own = [key for key, event in state["events"][name].items() if _is_open(state, name, event)]
        is_lost = not known["available"] and known.get("installed", True)
        affecting = [key for key, hosts in involved.items() if name in hosts]
        if not (own or is_lost or affecting):
            continue
        wanted = sorted({*own, *affecting})
        is_prepared = all(_is_settled(state["events"][name].get(key)) for key in wanted if key in undecided)
        goal = "nothing" if confirms else "recovered" if is_prepared else "prepared"
        reads[name] = _read(goal, wanted, state["round_ends"])
    # hosts that have prepared, or wait for the end, do not delay the decision about the others; a host that does not
    # list what the others name may never do so
    preparing = {name: each for name, each in reads.items() if each["wait_for"] == "prepared"}
    awaited = any(key in state["events"][name] for name in preparing for key in undecided)
    state["read"] = preparing if awaited else reads


def _is_settled(event: Variables | None) -> bool:
    return event is not None and (bool(event["is_over"]) or is_settled(event))


def _outline(state: State) -> t.Any:
    """Return what makes a round one that has changed something."""
    return (
        state["hosts"],
        {
            name: {
                key: (event["is_over"], event["status"], event["prepared_state"], event["resources"])
                for key, event in own.items()
            }
            for name, own in state["events"].items()
        },
        state["approved"],
    )


def _read(wait_for: str, event_ids: t.Sequence[str], until: float) -> dict[str, t.Any]:
    return {"wait_for": wait_for, "event_ids": list(event_ids), "until": until}
