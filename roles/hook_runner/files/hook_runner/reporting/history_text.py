# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history as text: tables, and all of one maintenance. Texts of IMDS and hooks lose their control characters."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from azure_scheduled_events.printable import printable
from hook_runner.records import ACCEPTED, OK, OPEN_STATES, PREPARE, RECOVER, REFUSED, RUNNING, SENT, STAGES

Json = Mapping[str, Any]

_MAINTENANCES = ("MAINTENANCE", "BEGAN (UTC)", "EVENT", "TYPE", "OUTCOME", "APPROVAL", "PREPARED", "RECOVERED")
_OTHERS = ("EVENT", "TYPE", "FIRST SEEN (UTC)", "OUTCOME", "APPROVAL", "AFFECTS")
# the text cuts longer texts and lists; the data has all of them
_MAX_CELL, _MAX_ID, _MAX_TEXT, _MAX_NAMES = 24, 64, 2000, 20


def overview(maintenances: Sequence[Json], others: Sequence[Json]) -> str:
    """Return a line for each event of the maintenances, and for each event without one; no final line break."""
    rows = [_maintenance_row(each, event) for each in maintenances for event in each["events"] or [None]]
    text = _table(_MAINTENANCES, rows) if rows else "no maintenances"
    return f"{text}\n\nevents without a maintenance\n{table_of_others(others)}" if others else text


def table_of_others(events: Sequence[Json]) -> str:
    """Return a line for each event that belongs to no maintenance; no final line break."""
    return _table(_OTHERS, [_other_row(event) for event in events]) if events else "no events"


def details(maintenances: Sequence[Json]) -> str:
    """Return all of the maintenances, with an empty line between them; no final line break."""
    return "\n\n".join("\n".join(_lines(each)) for each in maintenances)


def latest_result(hooks: Sequence[Json], stage: str) -> str:
    """Return the result of a stage by the latest run of each hook: "-" without any, else OK, or the first other one."""
    latest = {run["name"]: run["state"] for run in hooks if run["stage"] == stage}
    states = [state for state in latest.values() if state != OK]
    ended = [state for state in states if state not in OPEN_STATES]
    return "-" if not latest else ended[0] if ended else RUNNING if states else OK


def _maintenance_row(maintenance: Json, event: Json | None) -> tuple[str, ...]:
    recovered = latest_result(maintenance["hooks"], RECOVER)
    if maintenance["given_up_by"]:
        recovered += ", given up"
    began = (maintenance["id"], _time(maintenance["began"]))
    if event is None:
        return (*began, "unknown", "-", maintenance["outcome"] or "not over", "-", "-", recovered)
    has_hooks = any(run["stage"] == PREPARE for run in maintenance["hooks"])
    return (*began, *_about(event), event["prepared"] if has_hooks else "-", recovered)


def _other_row(event: Json) -> tuple[str, ...]:
    event_id, event_type, *rest = _about(event)
    affected = "this VM" if event["affects_this_vm"] else "others"
    return (event_id, event_type, _time(event["first_seen"]), *rest, affected)


def _about(event: Json) -> tuple[str, str, str, str]:
    outcome = event["outcome"] or "not over"
    return event["event_id"], event["event_type"] or "?", outcome, event["approval"] or "none"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widest = [_MAX_ID if heading == "EVENT" else _MAX_CELL for heading in headings]
    cells = [[_cut(cell, most) for cell, most in zip(row, widest)] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


def _lines(maintenance: Json) -> Iterator[str]:
    yield f"maintenance {maintenance['id']}"
    yield f"  began      {_time(maintenance['began'])} UTC"
    ended = maintenance["ended"]
    yield f"  ended      {_time(ended)} UTC" if ended else "  ended      not over"
    yield f"  outcome    {maintenance['outcome'] or 'not over'}"
    if maintenance["given_up_by"]:
        yield f"  recovery   {_cut(maintenance['given_up_by'])} gave it up"
    for event in maintenance["events"]:
        yield from _event_lines(event)
    for stage in STAGES:
        runs = [run for run in maintenance["hooks"] if run["stage"] == stage]
        if runs:
            yield f"  {stage}"
        for run in runs:
            yield from _run_lines(run)
    yield "  timeline   (UTC)"
    width = max((len(entry["what"]) for entry in maintenance["timeline"]), default=0)
    several = len(maintenance["events"]) > 1
    for entry in maintenance["timeline"]:
        event_id = f"{_cut(entry['event'], 8)}  " if several and entry["event"] else ""
        at = entry["at"].replace("T", " ").rstrip("Z")
        yield f"    {at}  {entry['what']:{width}}  {event_id}{_cut(entry['detail'])}".rstrip()


def _event_lines(event: Json) -> Iterator[str]:
    yield f"  event      {_cut(event['event_id'])}"
    about = [
        f"{_cut(event['event_type']) or 'unknown type'} by {_cut(event['source'] or '') or 'unknown source'}",
        _cut(event["status"]) or "no status",
    ]
    if event["not_before"] is not None:
        about.append(f"not before {_time(event['not_before'])} UTC")
    if event["duration_seconds"] is not None:
        about.append(f"expected to take {_duration(event['duration_seconds'])}")
    yield f"    what     {', '.join(about)}"
    names = event["resources"]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    yield f"    VMs      {', '.join(map(_cut, names[:_MAX_NAMES])) or 'no VM by name'}{more}"
    if event["description"]:
        yield f"    says     {_cut(event['description'])}"
    yield f"    prepared {event['prepared']}"
    states = {ACCEPTED: "accepted", SENT: "sent, not known to have arrived", REFUSED: "refused"}
    error = f" ({_cut(event['approval_error'])})" if event["approval_error"] else ""
    by = f": {_cut(event['approval_by'])}" if event["approval_by"] else ""
    yield f"    approval {states.get(event['approval'], 'none')}{error}{by}"
    gone = f"{event['outcome']}, over since {_time(event['gone_at'])} UTC" if event["gone_at"] else "not over"
    yield f"    outcome  {gone}"


def _run_lines(run: Json) -> Iterator[str]:
    status = run["exit_status"]
    end = "" if status is None else f"exit status {status}" if status >= 0 else f"signal {-status}"
    parts = [
        _cut(run["name"]),
        run["state"],
        "" if run["seconds"] is None else f"after {_duration(run['seconds'])}",
        end,
        f"attempt {run['attempt']}" if run["attempt"] > 1 else "",
    ]
    reason = f": {_cut(run['reason'])}" if run["reason"] and run["reason"] != end else ""
    yield f"    {'  '.join(filter(None, parts))}{reason}"
    for text in run["output"].splitlines():
        yield f"      | {printable(text.expandtabs())}".rstrip()


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{round(seconds, 1):g} s"
    if seconds < 3600:
        return "%d min %d s" % divmod(round(seconds), 60)
    return "%d h %d min" % divmod(round(seconds / 60), 60)


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _cut(text: str, most: int = _MAX_TEXT) -> str:
    return printable(text if len(text) <= most else text[: most - 3] + "...")
