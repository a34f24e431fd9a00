# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents become changes; a single document without an event or a VM changes nothing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    EventDocument,
    ScheduledEvent,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_tracker import (
    EventTracker,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
EVENT = ScheduledEvent(
    "A", "Freeze", "Scheduled", ("vm1", "vm2"), "VirtualMachine", NOW + timedelta(hours=1), "", "Platform", None
)
STARTED = EVENT._replace(status="Started", not_before=None)


def kinds(tracker, *documents, now=NOW):
    return [[change.kind for change in tracker.update(document, now)] for document in documents]


def document(*events, **members):
    return EventDocument(1, events, **members)


def test_event_is_gone_after_two_documents_without_it():
    tracker = EventTracker()
    assert kinds(tracker, document(EVENT), document(), document(STARTED), document(), document(), document()) == [
        ["appeared"],
        [],
        ["started"],
        [],
        ["gone"],
        [],
    ]
    assert not tracker.knows_events


def test_incomplete_document_says_nothing_about_missing_events():
    hidden = document(complete=False)
    assert kinds(EventTracker(), document(EVENT), hidden, hidden, hidden, document(), document()) == [
        ["appeared"],
        [],
        [],
        [],
        [],
        ["gone"],
    ]


def test_vm_is_gone_from_an_event_after_two_documents_without_it():
    smaller = EVENT._replace(resources=("vm2",))
    doubtful = document(EVENT._replace(resources=()), doubtful=("a",))
    tracker = EventTracker()
    assert kinds(tracker, document(EVENT), doubtful, doubtful, document(smaller), document(EVENT)) == [
        ["appeared"],
        [],
        [],
        [],
        [],
    ]
    assert kinds(tracker, document(smaller), document(smaller), document(EVENT)) == [[], ["changed"], ["changed"]]


def test_event_is_reported_when_it_is_due():
    tracker = EventTracker(due_within=600)
    later = NOW + timedelta(minutes=51)
    assert kinds(tracker, document(EVENT)) == [[]]
    assert kinds(tracker, document(EVENT), now=later) == [["appeared"]]
    moved = EVENT._replace(not_before=NOW + timedelta(hours=9))
    assert kinds(tracker, document(moved), now=later) == [["changed"]]
    assert kinds(EventTracker(due_within=600), document(STARTED)) == [["appeared"]]
