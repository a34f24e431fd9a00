# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Composes the report of a run with hook runners: the rows of the report of the role, from the last state."""

from __future__ import annotations

import typing as t

from ...module_utils.azure_scheduled_events.outcome import COMPLETED, outcome_of
from .approval_attempts import State
from .coordination import Variables, is_recovering
from .outcomes import FAILED, Course, outcome_of_maintenance

_TIMES = ("prepared", "approved", "started", "over", "recovered")
# a daemon with another value never approves an event of several VMs by a rule
_APPROVES_BY_ITSELF = "first"

Row = t.Dict[str, t.Any]


def coordination_rows(state: State) -> list[Row]:
    """Return one row for each host and event; a host without events has one row if it has a problem."""
    problems = coordination_problems(state)
    rows = []
    for name, own in state["events"].items():
        rows += [_row(state, name, event, problems.get(name, "")) for event in own.values()]
        if not own and name in problems:
            rows.append({**_blank(state, name, {}, problems[name]), "outcome": FAILED})
    return rows


def coordination_problems(state: State) -> dict[str, str]:
    """Return why the maintenance of a host is not complete, by host."""
    found = {name: "; ".join(filter(None, _problems(state, name))) for name in state["hosts"]}
    return {name: text for name, text in found.items() if text}


def _problems(state: State, name: str) -> t.Iterator[str]:
    known, own = state["hosts"][name], state["events"][name]
    if not known["available"]:
        yield known["reason"]
    if own and known["blocked"]:
        yield known["blocked"]
    if known["leader"] == _APPROVES_BY_ITSELF:
        yield "its hook runner has leader: first and approves without the other VMs; set leader: external"
    for key, event in own.items():
        if event.get("prepared_state") == "failed":
            hooks = ", ".join(event.get("failed_hooks") or ["see the log of its hook runner"])
            yield f"the preparation failed: {hooks}"
        if key in state["refusals"] and not state["approved"].get(key):
            yield f"not approved: {state['refusals'][key]['text']}"
        yield "" if state.get("check_mode") else _not_recovered(known, event)


def _not_recovered(known: Variables, event: Variables) -> str:
    if not event["is_over"]:
        return "the event is not over; the hook runner of the host recovers it"
    if event["recovered"]:
        return ""
    if event.get("given_up_by"):
        return f"not recovered: {event['given_up_by']} gave the recovery up"
    if known["maintenance"] is None:
        return "its hook runner has no record of the recovery"
    if not is_recovering(known):
        return ""  # it has another event, and recovers after that
    failed = ", ".join(f"recover/{hook}" for hook in known["maintenance"]["not_recovered"])
    return f"not recovered: {failed or 'the recover hooks have not ended'}"


def _row(state: State, name: str, event: Variables, problem: str) -> Row:
    key = event["key"]
    given = state["approved"].get(key)
    by_daemon = next(filter(None, (own.get(key, {}).get("approved") for own in state["events"].values())), None)
    withheld = state["refusals"].get(key) or state["withheld"].get(key) or {"code": "", "text": ""}
    approved, code = (given["at"], given["code"]) if given else (by_daemon, "approved" if by_daemon else "")
    if given and state.get("check_mode"):
        approved = None
    # a host whose own problem prevents the approval does not name it twice
    is_named = code or not withheld["text"] or key in state["refusals"] or event.get("prepared_state") == "failed"
    reasons = ["" if is_named else f"not approved: {withheld['text']}", problem]
    row = _blank(state, name, event, "; ".join(filter(None, reasons)))
    row.update({step: event.get(step) for step in _TIMES}, approved=approved, approval=code or withheld["code"])
    started = any(own.get(key, {}).get("started") for own in state["events"].values())
    row["outcome"] = outcome_of_maintenance(
        Course(
            checked=bool(state.get("check_mode")),
            failed=bool(problem),
            prepared=bool(event.get("prepared")),
            outcome=outcome_of(started or event.get("outcome") == COMPLETED),
        )
    )
    return row


def _blank(state: State, name: str, event: Variables, why_not: str) -> Row:
    return {
        "host": name,
        "vm": state["hosts"][name]["vm"],
        "event_id": event.get("event_id", ""),
        "event_type": event.get("event_type") or "",
        "resources": list(event.get("resources", ())),
        "not_before": event.get("first_not_before"),
        "moved_to": event.get("not_before") if event.get("not_before") != event.get("first_not_before") else None,
        **dict.fromkeys(_TIMES),
        "approval": "",
        "outcome": "",
        "why_not": why_not,
    }
