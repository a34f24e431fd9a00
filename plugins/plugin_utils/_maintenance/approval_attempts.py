# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who sends the approval of an event, and who is next after a failure; for hosts with notes and with hook runners.

Pure. A run keeps its decisions and attempts in a state of plain data, because Ansible keeps it in a fact.
"""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone

from ...module_utils.azure_scheduled_events.release import Obstacle, Report, approver_order
from .hosts import APPROVED, MaintenanceHost

# the outcome of an attempt whose host was lost, or could not send the approval
FAILED = "failed"
# the code of the obstacle that nothing is known of a VM now
NOT_KNOWN = "not_known"

_RESULTS = ("approved", "refusals", "withheld")

State = t.Dict[str, t.Any]
Decision = t.Dict[str, t.Any]


def no_attempts() -> State:
    """Return the state before the first decision.

    ``decisions`` has those of the round. The other members are dictionaries by the key of the event: ``approved`` has
    the time and the code of an approval, ``attempts`` the number of those that did not succeed, ``refusals`` the last
    of them, and ``withheld`` why an event was not to be approved.
    """
    return {"approved": {}, "attempts": {}, "refusals": {}, "withheld": {}, "decisions": []}


def last_results(states: t.Iterable[State]) -> State:
    """Return the results that the hosts know: batches have different events, and a host that was lost an older state.

    Each state has its ``round``.
    """
    last = no_attempts()
    for state in sorted(states, key=lambda each: int(each["round"])):
        newer = {key for name in _RESULTS for key in state[name]}
        for name in _RESULTS:
            last[name] = {**{key: value for key, value in last[name].items() if key not in newer}, **state[name]}
    return last


def senders(reports: t.Mapping[str, Report], hosts: t.Mapping[str, str]) -> list[str]:
    """Return the hosts in the order in which they send the approval; ``hosts`` has the known ones by VM."""
    return [hosts[vm] for vm in approver_order(reports) if vm in hosts]


def decision(
    state: State,
    event: t.Mapping[str, t.Any],
    resources: t.Iterable[str],
    hosts: t.Sequence[str],
    found: t.Sequence[Obstacle],
) -> Decision:
    """Return the decision about an event; the host ``by`` sends the approval, another one after each failure.

    Args:
        state: the state before.
        event: with ``key``, ``event_id`` and ``event_type``.
        resources: the VMs that the approval releases.
        hosts: those that can send it, in the order of `senders`.
        found: the obstacles.
    """
    return {
        "key": event["key"],
        "event_id": event["event_id"],
        "event_type": event["event_type"],
        "resources": list(resources),
        "senders": list(hosts),
        "by": hosts[state["attempts"].get(event["key"], 0) % len(hosts)] if hosts else "",
        "approve": not found,
        "code": found[0].code if found else "",
        "why_not": "; ".join(map(str, found)),
    }


def withheld_by(before: t.Mapping[str, t.Any], decisions: t.Iterable[Decision]) -> State:
    """Return why events are not to be approved, by key, after these decisions."""
    withheld = dict(before)
    for each in decisions:
        if each["why_not"]:
            withheld[each["key"]] = {"code": each["code"], "text": each["why_not"]}
        else:
            withheld.pop(each["key"], None)
    return withheld


def with_approvals(before: State, hosts: t.Iterable[MaintenanceHost], now: float) -> State:
    """Return the state after the approvals of its decisions; the hosts have the results of those that they sent.

    ``now`` is Unix time.
    """
    at = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    state = dict(
        before, approved=dict(before["approved"]), attempts=dict(before["attempts"]), refusals=dict(before["refusals"])
    )
    by_name = {host.name: host for host in hosts}
    for each in before["decisions"]:
        if not each["approve"]:
            continue
        key = each["key"]
        result = by_name[each["by"]].approval_of(each["event_id"])
        if result is not None and result.outcome in APPROVED:
            state["approved"][key] = {"at": at, "code": result.outcome}
            state["refusals"].pop(key, None)
            continue
        state["attempts"][key] = state["attempts"].get(key, 0) + 1
        code, text = FAILED, f"host {each['by']} was lost during the approval"
        if result is not None:
            code, text = result.outcome, result.why_not
        state["refusals"][key] = {"code": code, "text": text, "by": each["by"]}
    state["decisions"] = []
    return state
