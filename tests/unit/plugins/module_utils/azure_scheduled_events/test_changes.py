# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.changes import changes
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    EventDocument,
    ScheduledEvent,
)

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def event(event_id="A", **values):
    usual = ScheduledEvent(
        event_id, "Reboot", "Scheduled", ("vm1", "vm2"), "VirtualMachine", NOON, "", "Platform", None
    )
    return usual._replace(**values)


def document(*events, incarnation=1, complete=True):
    return EventDocument(incarnation, events, (), complete)


def kinds(before, after):
    return [(change.kind, change.event.event_id) for change in changes(before, after)]


def test_changes_without_an_earlier_document_are_appeared():
    assert kinds(None, document(event("A"), event("B", status="Started"))) == [("appeared", "A"), ("appeared", "B")]


def test_changes_of_equal_documents_are_none_whatever_the_incarnation():
    assert kinds(document(event(), incarnation=1), document(event(), incarnation=9)) == []


def test_changes_are_found_if_the_incarnation_is_equal_or_smaller():
    assert kinds(document(incarnation=279), document(event(), incarnation=1)) == [("appeared", "A")]
    assert kinds(document(incarnation=5), document(event(), incarnation=5)) == [("appeared", "A")]


def test_changes_from_scheduled_to_started_are_one_started():
    (change,) = changes(document(event()), document(event(status="Started", not_before=None)))
    assert (change.kind, change.fields) == ("started", ("status", "not_before"))


def test_changes_of_a_missing_event_are_gone():
    (change,) = changes(document(event()), document())
    assert (change.kind, change.event) == ("gone", event())


def test_changes_to_an_incomplete_document_have_no_gone():
    assert kinds(document(event("A"), event("B")), document(event("B"), complete=False)) == []


def test_changes_ignore_the_letter_case_of_ids():
    assert kinds(document(event("ABC")), document(event("abc"))) == []


def test_changes_name_the_changed_fields():
    after = event(not_before=NOON + timedelta(minutes=5), event_type="Redeploy", resources=("vm2",))
    (change,) = changes(document(event()), document(after))
    assert change.kind == "changed"
    assert set(change.fields) == {"not_before", "event_type", "resources"}


def test_changes_ignore_the_order_and_spelling_of_resources():
    before = document(event("A"), event("B"))
    assert kinds(before, document(event("B"), event("A", resources=("_VM2", "vm1")))) == []


def test_changes_from_started_to_scheduled_are_changed():
    (change,) = changes(document(event(status="Started")), document(event()))
    assert (change.kind, change.event.status, change.fields) == ("changed", "Scheduled", ("status",))


def test_changes_list_gone_before_appeared():
    assert kinds(document(event("A")), document(event("B"))) == [("gone", "A"), ("appeared", "B")]


def test_changes_of_ten_thousand_events_are_found():
    many = document(*[event(f"ID-{number}") for number in range(10000)])
    assert changes(many, many) == ()
