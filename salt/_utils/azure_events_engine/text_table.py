# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Formats the rows of the runner as text: a table for each event, and one of the minions."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Mapping, Sequence

Row = Mapping[str, Any]

_VM = ("vm", "minion", "prepared", "why_not")
_MINION = ("minion", "vm", "name_from", "answered_seconds_ago", "events", "problem")


def events_as_text(rows: Sequence[Row], problem: str = "") -> str:
    """Return a line about each event, and a table of its VMs, from the rows of ``status``."""
    lines = _headed(problem) or ([] if rows else ["no events"])
    for event_id, found in groupby(rows, key=lambda row: row["event_id"]):
        vms = list(found)
        event = vms[0]
        lines.append(
            "{}: {}, not before {}, waiting for {}".format(
                event_id, event["event_type"], event["not_before"] or "-", event["waiting_for"]
            )
        )
        lines += [f"  {name}: {event[name]}" for name in ("approved", "withheld") if event[name]]
        lines += ["  " + line for line in _table(vms, _VM)]
    return "\n".join(lines)


def minions_as_text(rows: Sequence[Row], problem: str = "") -> str:
    """Return the rows of ``fleet`` as one table."""
    return "\n".join([*_headed(problem), *_table(rows, _MINION)])


def _headed(problem: str) -> list[str]:
    return [f"problem: {problem}"] if problem else []


def _table(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    cells = [
        [name.upper().replace("_", " ") for name in columns],
        *([_cell(row[name]) for name in columns] for row in rows),
    ]
    widths = [max(len(line[number]) for line in cells) for number in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]


def _cell(value: Any) -> str:
    """Return the value on one line; "-" for none."""
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return "-" if value in (None, "") else str(value)
