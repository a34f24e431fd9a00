# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Where the verb `history` gets it from: the daemon, which answers in pages, or the journal's file where no daemon runs.

Only root may read the file: a process that reads it could also lock it, and the daemon could not
write then.
"""

from __future__ import annotations

import json
from typing import Any, Mapping

from azure_scheduled_events.named_tuple import NamedTuple
from hook_runner.event_ids import MAX_CANDIDATES, matching_ids
from hook_runner.journal.reader import JournalReader, JournalUnreadable
from hook_runner.reporting import history
from hook_runner.service.control_socket import send_request

# the daemon's loop does nothing else while it answers: so many records, or so many bytes of them
PAGE_RECORDS = 20
PAGE_BYTES = 1 << 20
# the daemon prunes its journal to fewer
ALL = 1 << 30


class Found(NamedTuple):
    """What the journal has.

    Attributes:
        events: oldest first, as `history.to_dict` has them.
        texts: the same for people, one text for each.
        unreadable: a sentence for each record that had to be left out.
        candidates: the ids of several events that begin as what was asked for; nothing else is
            found then.
    """

    events: list[dict[str, Any]]
    texts: list[str]
    unreadable: list[str]
    candidates: list[str]


def from_daemon(run_directory: str, event_id: str | None, limit: int) -> Found | None:
    """Ask the daemon; None where it cannot say. Raises OSErrors as `control.ask`."""
    pages: list[dict[str, Any]] = []
    count, before = 0, None
    while count < limit:
        page = send_request(
            run_directory, {"ask": "history", "event_id": event_id, "limit": limit - count, "before": before}
        )
        if "events" not in page:
            return None  # an older daemon, or one whose journal cannot be read
        pages.append(page)
        count, before = count + len(page["events"]), page["next"]
        if before is None:
            break
    events, texts, unreadable = (
        [each for page in pages for each in page[name]] for name in ("events", "texts", "unreadable")
    )
    return Found(events[::-1], texts[::-1], unreadable, pages[0]["candidates"] if pages else [])


def from_file(path: str, event_id: str | None, limit: int) -> Found:
    """Read the journal's file. Raises JournalUnreadable."""
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


def page(journal: JournalReader, question: Mapping[str, Any]) -> dict[str, Any]:
    """The daemon's answer: newest first, with the number to go on from in `next`, or null at the end."""
    event_id, limit, before = question.get("event_id"), question.get("limit"), question.get("before")
    limit = min(limit, PAGE_RECORDS) if isinstance(limit, int) else PAGE_RECORDS
    events: list[dict[str, Any]] = []
    texts: list[str] = []
    following, size = None, 0
    try:
        key, candidates = _key(journal, event_id if isinstance(event_id, str) else None)
        ids = [] if candidates else journal.ids(limit, key, before if isinstance(before, int) else None)
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
    """The key of the event that is meant, and the ids of several that may be."""
    if event_id is None:
        return None, []
    keys = matching_ids(event_id, journal.keys_beginning(event_id.casefold(), MAX_CANDIDATES))
    if len(keys) < 2:
        return keys[0] if keys else event_id, []
    return None, [record.event.event_id for key in keys for record in journal.records(1, key)]
