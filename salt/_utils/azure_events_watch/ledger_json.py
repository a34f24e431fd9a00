# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Converts a ledger to plain JSON values, and back."""

from __future__ import annotations

from typing import Any

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.timestamps import parse_time

from .ledger import MAX_ENDED, Entry, Ledger, Notice


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as JSON values, ended events before present ones."""
    items = [
        dict(
            entry.notice._asdict(),
            event=entry.notice.event.as_dict(),
            meant=entry.selected,
            announced=entry.announced,
        )
        for entry in (*ledger.ended, *ledger.entries.values())
    ]
    return {
        "sequence": ledger.sequence,
        "entries": items,
        "returned": sorted(ledger.returned),
        "gone": list(ledger.gone),
    }


def ledger_from_json(data: dict[str, Any]) -> Ledger:
    """Return the ledger of a state file's content; raise ValueError if the content is not a ledger."""
    try:
        entries = [_entry(dict(item)) for item in data["entries"]]
        return Ledger(
            int(data["sequence"]),
            {entry.key: entry for entry in entries if entry.is_present},
            tuple(entry for entry in entries if not entry.is_present)[-MAX_ENDED:],
            frozenset(map(str, data["returned"])),
            tuple(map(str, data["gone"])),
        )
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"invalid entry: {type(error).__name__} {error}") from None


def _entry(item: dict[str, Any]) -> Entry:
    selected, announced = item.pop("meant") is True, item.pop("announced") is True
    event = ScheduledEvent.from_json(item.pop("event"))
    notice = Notice(event=event, fields=tuple(map(str, item.pop("fields"))), **item)
    if notice.change not in ("scheduled", "changed", "started", "gone") or parse_time(notice.changed_at) is None:
        raise ValueError(f"change {notice.change!r} at {notice.changed_at!r}")
    return Entry(notice._replace(sequence=int(notice.sequence)), selected, announced)
