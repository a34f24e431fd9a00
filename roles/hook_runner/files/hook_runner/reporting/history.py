# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history of maintenances as JSON values; `history_text` prints them.

Times are ISO 8601 in UTC; unknown values are null. Texts of IMDS and hooks are not trusted: json.dumps escapes them.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Mapping, Sequence

from azure_scheduled_events.identity import affects
from azure_scheduled_events.printable import escape_surrogates
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.maintenance.record import NO_EVENT, EventRecord, HookRun, Maintenance
from hook_runner.record_files import Stored

Json = Dict[str, Any]
# an error names no more candidates than these
MAX_CANDIDATES = 10


def to_data(stored: Stored) -> Json:
    """Return all that is stored, the oldest first: `maintenances` and `others`, and sentences on what is `missing`.

    `others` are the events that are gone and belong to no maintenance.
    """
    own_name = stored.state.vm.name
    return {
        "maintenances": [maintenance_data(each, own_name) for each in reversed(stored.maintenances)],
        "others": [past_event(record, own_name) for record in stored.state.past],
        "missing": list(stored.unreadable.values()),
    }


def matching(asked: str, entries: Sequence[Json]) -> list[Json]:
    """Return the maintenances or events whose id begins so, and the maintenances that have such an event."""
    return [each for each in entries if matching_ids(asked, _ids(each))]


def matching_ids(asked: str, known: Iterable[str]) -> list[str]:
    """Return the id that equals `asked` in any letter case, or all ids that begin with it, in the order of `known`."""
    folded = asked.casefold()
    found = [each for each in dict.fromkeys(known) if folded and each.casefold().startswith(folded)]
    return [each for each in found if each.casefold() == folded][:1] or found[:MAX_CANDIDATES]


def maintenance_data(maintenance: Maintenance, own_name: str) -> Json:
    """Return one entry of `history --json`."""
    ids = ids_by_number(maintenance)
    return {
        "id": str(maintenance.number),
        "began": exact_text(maintenance.began),
        "ended": exact_text(maintenance.ended),
        "outcome": maintenance.outcome or None,
        "given_up_by": shown(maintenance.given_up_by),
        "events": [past_event(record, own_name) for record in maintenance.events],
        "hooks": [_ended_run(run, ids) for run in maintenance.runs],
        "timeline": [
            {"at": exact_text(at), "what": what, "event": shown(event_id), "detail": detail}
            for at, what, event_id, detail in maintenance.timeline
        ],
    }


def past_event(record: EventRecord, own_name: str) -> Json:
    """Return an event of the history; `own_name` is this VM's resource name, "" while it is unknown."""
    return {
        **event_data(record, own_name),
        "first_type": record.first_type,
        "first_status": record.first_status,
        "gone_at": None if record.gone_at is None else as_utc_text(record.gone_at),
        "outcome": record.outcome or None,
    }


def event_data(record: EventRecord, own_name: str) -> Json:
    """Return the members of an event that `status` and `history` share."""
    return {
        **record.event.as_dict(),
        "affects_this_vm": affects_this_vm(record, own_name),
        "first_seen": as_utc_text(record.first_seen),
        "prepared": record.prepared,
        "approval": record.approval or None,
        "approval_by": shown(record.approval_by),
        "approval_error": shown(record.approval_error),
    }


def affects_this_vm(record: EventRecord, own_name: str) -> bool:
    """Return True if an event affects this VM, or affected it until it was gone."""
    return record.number != NO_EVENT or (bool(own_name) and affects(record.event, own_name))


def run_data(run: HookRun, ids: Mapping[int, str]) -> Json:
    """Return the members of a hook run that `status` and `history` share; `ids` are those of the events by number."""
    return {
        "stage": run.stage,
        "name": escape_surrogates(run.name),
        "state": run.state,
        "attempt": run.attempt,
        "event": ids.get(run.event),
        "reason": shown(run.reason),
        "started": exact_text(run.began),
        "ended": exact_text(run.ended),
    }


def ids_by_number(maintenance: Maintenance) -> dict[int, str]:
    """Return the ids of the events by number."""
    return {record.number: record.event.event_id for record in maintenance.events}


def exact_text(time: datetime | None) -> str | None:
    """Return a time with milliseconds, such as 2026-11-21T12:00:00.123Z."""
    if time is None:
        return None
    return time.astimezone(timezone.utc).replace(tzinfo=None).isoformat("T", "milliseconds") + "Z"


def shown(text: str) -> str | None:
    """Return a text for JSON; None for an empty one."""
    return escape_surrogates(text) or None


def _ended_run(run: HookRun, ids: Mapping[int, str]) -> Json:
    return {
        **run_data(run, ids),
        # the server's clock may have moved back within its second
        "seconds": None if run.ended is None else max(0.0, round((run.ended - run.began).total_seconds(), 3)),
        "exit_status": run.exit_status,
        "output": escape_surrogates(run.output),
        "cause": run.cause.value or None,
    }


def _ids(entry: Json) -> list[str]:
    return [entry["id"], *(each["event_id"] for each in entry["events"])] if "events" in entry else [entry["event_id"]]
