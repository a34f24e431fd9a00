# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Composes the report of a maintenance run: one row for each host and event, as data and as a table."""

from __future__ import annotations

import typing as t

from ...module_utils.azure_scheduled_events.outcome import UNKNOWN, outcome_of
from ...module_utils.azure_scheduled_events.printable import printable
from .approval_attempts import State
from .hosts import Approval, Event, MaintenanceHost
from .outcomes import FAILED, Course, outcome_of_maintenance

_TIMES = ("prepared", "approved", "started", "over", "recovered")

Row = t.Dict[str, t.Any]


def compose_report(hosts: t.Sequence[MaintenanceHost], decided: State) -> list[Row]:
    """Return one row for each host and event; a host without events has one row if it had a note or a problem.

    ``decided`` has the results of the approvals.
    """
    started = {event["event_id"].casefold() for host in hosts for event in host.events() if event.get("started")}
    rows = []
    for host in hosts:
        events = host.events()
        rows += [_row(host, event, decided, started) for event in events]
        if not events and (host.takes_part or host.problem()):
            row = _blank(host, {}, _joined(host.problem(), host.awaits()))
            rows.append({**row, "recovered": host.recovered_at, "outcome": FAILED if host.problem() else UNKNOWN})
    return rows


def table_of(rows: t.Sequence[Row]) -> list[str]:
    """Return the lines of the table."""
    if not rows:
        return ["no host has an event to prepare for"]
    cells = [["host", "event", "not before", *_TIMES, "outcome", "why not"]]
    for row in rows:
        event = " ".join(filter(None, [row["event_type"], row["event_id"]])) or "-"
        times = [_time_of_day(row[name]) for name in _TIMES]
        cells.append([row["host"], event, _not_before(row), *times, row["outcome"], row["why_not"]])
    widths = [max(map(len, column)) for column in zip(*cells)]
    return [printable("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip()) for line in cells]


def _row(
    host: MaintenanceHost,
    event: Event,
    decided: State,
    started: t.Collection[str],
) -> Row:
    key = event["event_id"].casefold()
    approval = _approval_of(event, decided)
    # a host whose own problem prevents the approval does not name it twice
    not_approved = "not approved: " + approval.why_not if approval.why_not and not host.failed_to_prepare else ""
    waits_because = "" if host.takes_part else host.waits_because(key)
    row = _blank(host, event, _joined(not_approved, waits_because, host.problem(), host.awaits()))
    prepared = host.prepared_at(event["event_type"]) or event.get("prepared")
    row.update(
        prepared=prepared,
        approved=None if host.is_checked else approval.at,
        approval=approval.outcome,
        recovered=host.recovered_at,
    )
    row.update(started=event.get("started"), over=event.get("over"))
    row["outcome"] = outcome_of_maintenance(
        Course(
            checked=host.is_checked,
            waits=bool(waits_because),
            removed=host.is_removed,
            continues=host.continues,
            failed=bool(host.problem()),
            pending=bool(host.awaits()),
            prepared=bool(prepared),
            outcome=outcome_of(key in started, event.get("outcome") or UNKNOWN),
        )
    )
    return row


def _approval_of(event: Event, decided: State) -> Approval:
    """Return the approval of the event, or why there is none; a started event needs none."""
    if event.get("came_later"):
        return Approval("came_later", None, "it came during the wait")
    key = event["event_id"].casefold()
    approved = decided["approved"].get(key)
    if approved:
        return Approval(approved["code"], approved["at"], "")
    why_not = decided["refusals"].get(key) or decided["withheld"].get(key) or {"code": "", "text": ""}
    return Approval(why_not["code"], None, why_not["text"])


def _blank(host: MaintenanceHost, event: Event, why_not: str) -> Row:
    return {
        "host": host.name,
        "vm": host.vm,
        "event_id": event.get("event_id", ""),
        "event_type": event.get("event_type", ""),
        "resources": list(event.get("resources", ())),
        "not_before": event.get("not_before"),
        "moved_to": _moved_to(event),
        **dict.fromkeys(_TIMES),
        "approval": "",
        "outcome": "",
        "why_not": why_not,
    }


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _moved_to(event: Event) -> str | None:
    """Return the last NotBefore of the event if it differs from the first one, else None."""
    last = event.get("last_not_before")
    return last if last != event.get("not_before") else None


def _not_before(row: Row) -> str:
    first, last = _time_of_day(row["not_before"]), row["moved_to"]
    return f"{first}>{_time_of_day(last)}" if last else first


def _time_of_day(moment: str | None) -> str:
    return moment[11:19] if moment else "-"
