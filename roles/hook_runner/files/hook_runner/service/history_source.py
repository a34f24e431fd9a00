# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Gets the history from the daemon, which answers in pages, or from the journal's file.

Only root may read the file: a process that reads it could also lock it, and the daemon could not
write it.
"""

from __future__ import annotations

import json
from typing import Any, Mapping, NamedTuple

from hook_runner.event_ids import MAX_CANDIDATES, matching_ids
from hook_runner.journal.reader import JournalReader, JournalUnreadable
from hook_runner.reporting import history
from hook_runner.service.control_socket import send_request

# limits of one page, in records and bytes: the main loop does nothing else while it answers
PAGE_RECORDS = 20
PAGE_BYTES = 1 << 20
# more than the daemon keeps in its journal
ALL = 1 << 30
# of a record, in SQLite
_LARGEST_ID = (1 << 63) - 1


class Found(NamedTuple):
    """The history that was found.

    Attributes:
        events: oldest first, as `history.to_dict` returns them.
        texts: one text for each event.
        unreadable: a sentence for each record that is left out.
        candidates: the ids of several events that begin with the requested id; then the other
            attributes are empty.
    """

    events: list[dict[str, Any]]
    texts: list[str]
    unreadable: list[str]
    candidates: list[str]


def from_daemon(run_directory: str, event_id: str | None, limit: int) -> Found | None:
    """Request the history from the daemon; return None if it cannot answer.

    Raises the errors of `send_request`.
    """
    pages: list[dict[str, Any]] = []
    count, before = 0, None
    while count < limit:
        page = send_request(
            run_directory, {"ask": "history", "event_id": event_id, "limit": limit - count, "before": before}
        )
        if "events" not in page:
            return None  # a daemon whose journal is unreadable
        pages.append(page)
        count, before = count + len(page["events"]), page["next"]
        if before is None:
            break
    events, texts, unreadable = (
        [each for page in pages for each in page[name]] for name in ("events", "texts", "unreadable")
    )
    return Found(events[::-1], texts[::-1], unreadable, pages[0]["candidates"] if pages else [])


def from_file(path: str, event_id: str | None, limit: int) -> Found:
    """Read the history from the journal's file. Raises JournalUnreadable."""
    journal = JournalReader.open(path)
    try:
        key, candidates = _key(journal, event_id)
        if candidates:
            return Found([], [], [], candidates)
        records = journal.records(limit, key)[::-1]
        return Found(
            history.to_dict(records), [history.as_text([record]) for record in records], journal.unreadable, []
        )
    finally:
        journal.close()


def page(journal: JournalReader, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page for the daemon's answer: newest first, with the start of the next page in `next`, or None.

    A page ends after the requested number of records, at most PAGE_RECORDS, or with the record that exceeds
    PAGE_BYTES. It is empty if the request may mean several events. If the journal cannot be read, there is only
    an error.
    """
    event_id, limit, before = request.get("event_id"), request.get("limit"), request.get("before")
    limit = max(1, min(limit, PAGE_RECORDS)) if isinstance(limit, int) else PAGE_RECORDS
    before = max(0, min(before, _LARGEST_ID)) if isinstance(before, int) else None
    events: list[dict[str, Any]] = []
    texts: list[str] = []
    following, size = None, 0
    try:
        key, candidates = _key(journal, event_id if isinstance(event_id, str) else None)
        ids = [] if candidates else journal.ids(limit, key, before)
        for record_id in ids:
            record = journal.record(record_id)
            if record is not None:
                events += history.to_dict([record])
                texts.append(history.as_text([record]))
                size += len(json.dumps(events[-1]))
            is_last = record_id == ids[-1] and len(ids) < limit
            following = None if is_last else record_id
            if size >= PAGE_BYTES:
                break
    except JournalUnreadable as error:
        return {"error": str(error)}
    return {
        "events": events,
        "texts": texts,
        "unreadable": journal.unreadable,
        "candidates": candidates,
        "next": following,
    }


def _key(journal: JournalReader, event_id: str | None) -> tuple[str | None, list[str]]:
    """Return the key of the requested event, or the ids of several events that the request may mean."""
    if event_id is None:
        return None, []
    keys = matching_ids(event_id, journal.keys_beginning(event_id.casefold(), MAX_CANDIDATES))
    if len(keys) < 2:
        return keys[0] if keys else event_id, []
    return None, [record.event.event_id for key in keys for record in journal.records(1, key)]
