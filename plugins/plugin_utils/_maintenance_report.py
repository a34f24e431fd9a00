# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Composes the report of a maintenance run: one row for each host and event, as data and as a table."""

from __future__ import annotations

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance_hosts import (
    Event,
    MaintenanceHost,
)

_TIMES = ("prepared", "approved", "started", "over", "recovered")

Row = t.Dict[str, t.Any]


def compose_report(hosts: t.Sequence[MaintenanceHost], decisions: t.Iterable[t.Mapping[str, t.Any]]) -> list[Row]:
    """Return one row for each host and event; a host without events has one row if it had a note or a problem."""
    withheld = {decision["event_id"].casefold(): decision["why_not"] for decision in decisions}
    rows = []
    for host in hosts:
        events = host.events()
        rows += [_row(host, event, hosts, withheld) for event in events]
        if not events and (host.takes_part or host.problem()):
            rows.append({**_blank(host, {}, _joined(host.problem(), host.awaits())), "recovered": host.recovered_at})
    return rows


def table_of(rows: t.Sequence[Row]) -> list[str]:
    """Return the lines of the table."""
    if not rows:
        return ["no host has an event to prepare for"]
    cells = [["host", "event", *_TIMES, "why not"]]
    for row in rows:
        event = " ".join(filter(None, [row["event_type"], row["event_id"]])) or "-"
        cells.append([row["host"], event, *(_time_of_day(row[name]) for name in _TIMES), row["why_not"]])
    widths = [max(map(len, column)) for column in zip(*cells)]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in cells]


def _row(host: MaintenanceHost, event: Event, hosts: t.Sequence[MaintenanceHost], withheld: t.Mapping[str, str]) -> Row:
    approvals = [approver.approval_of(event["event_id"]) for approver in hosts]
    approved = next((at for at, dummy in approvals if at), None)
    why_not = (
        ""
        if approved
        else next((reason for dummy, reason in approvals if reason), withheld.get(event["event_id"].casefold(), ""))
    )
    if event.get("came_later"):
        why_not = "it came during the wait"
    # a host whose own problem prevents the approval does not name it twice
    withheld_because = "not approved: " + why_not if why_not and not host.failed_to_prepare else ""
    row = _blank(host, event, _joined(withheld_because, host.problem(), host.awaits()))
    row.update(prepared=host.prepared_at, approved=approved, recovered=host.recovered_at)
    row.update(started=event.get("started"), over=event.get("over"))
    return row


def _blank(host: MaintenanceHost, event: Event, why_not: str) -> Row:
    return {
        "host": host.name,
        "vm": host.vm,
        "event_id": event.get("event_id", ""),
        "event_type": event.get("event_type", ""),
        "resources": list(event.get("resources", ())),
        "not_before": event.get("not_before"),
        **dict.fromkeys(_TIMES),
        "why_not": why_not,
    }


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _time_of_day(moment: str | None) -> str:
    return moment[11:19] if moment else "-"
