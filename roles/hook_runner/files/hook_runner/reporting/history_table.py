# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history as a table with a line for each event."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from azure_scheduled_events.printable import printable
from hook_runner.records import OK, RUNNING, SKIPPED

HEADINGS = ("EVENT", "TYPE", "FIRST SEEN (UTC)", "OUTCOME", "APPROVAL", "PREPARED", "RECOVERED")
# most characters of a column, except the first: texts of IMDS may be long
MAX_WIDTH = 24
MAX_ID = 64


def as_text(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the result of `history.to_dict` as a table; no final line break."""
    if not events:
        return "no events"
    lines = [HEADINGS, *(_cells(event) for event in events)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def _cells(event: Mapping[str, Any]) -> tuple[str, ...]:
    about, stages = event["event"], event["stages"]
    life = f" (life {event['life']})" if event["life"] > 1 else ""
    results = [result(stages[name]) for name in ("prepare", "recover")] if event["concerned"] else ["not this VM", "-"]
    if event["gone_at"] is not None and event["closed_at"] is None and event["concerned"]:
        results[1] += ", not done"
    first_seen = event["first_seen"][:19].replace("T", " ")
    cells = [
        about["event_type"] or "?",
        first_seen,
        event["outcome"] or "not over",
        event["approval"]["state"] or "none",
    ]
    return (_cut(about["event_id"], MAX_ID) + life, *(_cut(cell, MAX_WIDTH) for cell in cells + results))


def result(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the result of a stage by the latest run of each hook.

    "-" without any run, "ok", "running", or the first other state.
    """
    latest = {run["hook"]: run["state"] for run in runs}
    states = [state for state in latest.values() if state not in (OK, SKIPPED)]
    if not latest:
        return "-"
    return next((state for state in states if state != RUNNING), RUNNING if states else OK)


def _cut(text: str, longest: int) -> str:
    return printable(text if len(text) <= longest else text[: longest - 3] + "...")
