# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""A ledger as plain JSON values, and back."""

from __future__ import annotations

from typing import Any

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.timestamps import parse_time

from .ledger import ENDS, Entry, Ledger, Notice


def entries_as_data(ledger: Ledger) -> list[dict[str, Any]]:
    """The entries of the ledger, what ended before what lasts; unlike the shape that is sent, ids stay as IMDS wrote them."""
    listed = []
    for entry in (*ledger.ended, *ledger.entries.values()):
        listed.append(
            dict(
                entry.notice._asdict(),
                event=entry.notice.event.to_json(),
                seen_started=entry.seen_started,
                meant=entry.meant,
                announced=entry.announced,
                returns=entry.returns,
            )
        )
    return listed


def ledger_of(data: dict[str, Any]) -> Ledger:
    """The ledger of a file's content. Raises ValueError for what is none."""
    try:
        entries = [_entry(dict(item)) for item in data["entries"]]
        lasting = {entry.key: entry for entry in entries if entry.lasts}
        return Ledger(int(data["sequence"]), lasting, tuple(entry for entry in entries if not entry.lasts)[-ENDS:])
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"an entry cannot be used: {type(error).__name__} {error}") from None


def _entry(item: dict[str, Any]) -> Entry:
    seen_started, meant = item.pop("seen_started") is True, item.pop("meant") is True
    # a file of an earlier version has announced all that it lists
    announced, returns = item.pop("announced", True) is True, int(item.pop("returns", 0))
    event = ScheduledEvent.from_json(item.pop("event"))
    notice = Notice(event=event, fields=tuple(map(str, item.pop("fields"))), **item)
    if notice.change not in ("scheduled", "changed", "started", "gone") or parse_time(notice.changed_at) is None:
        raise ValueError(f"change {notice.change!r} at {notice.changed_at!r}")
    return Entry(notice._replace(sequence=int(notice.sequence)), seen_started, meant, announced, returns)
