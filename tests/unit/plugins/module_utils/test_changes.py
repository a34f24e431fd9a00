# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happened between two documents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.changes import (
    carry_over_hidden,
    changes,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    EventDocument,
    ScheduledEvent,
)

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def event(event_id="A", **values):
    usual = ScheduledEvent(
        event_id, "Reboot", "Scheduled", ("vm1", "vm2"), "VirtualMachine", NOON, "", "Platform", None
    )
    return usual._replace(**values)


def document(*events, incarnation=1, complete=True):
    return EventDocument(incarnation, events, (), complete)


def kinds(before, after):
    return [(change.kind, change.event.event_id) for change in changes(before, after)]


def test_without_an_earlier_document_every_event_has_appeared():
    assert kinds(None, document(event("A"), event("B", status="Started"))) == [("appeared", "A"), ("appeared", "B")]


def test_equal_documents_hold_no_change_even_with_another_incarnation():
    assert kinds(document(event(), incarnation=1), document(event(), incarnation=9)) == []


def test_a_change_is_seen_although_the_incarnation_is_the_same_or_smaller():
    assert kinds(document(incarnation=279), document(event(), incarnation=1)) == [("appeared", "A")]
    assert kinds(document(incarnation=5), document(event(), incarnation=5)) == [("appeared", "A")]


def test_scheduled_to_started_is_one_event_that_started():
    (change,) = changes(document(event()), document(event(status="Started", not_before=None)))
    assert (change.kind, change.previous, change.fields) == ("started", event(), ("status", "not_before"))


def test_an_event_that_is_missing_is_gone():
    (change,) = changes(document(event()), document())
    assert (change.kind, change.event) == ("gone", event())


def test_nothing_is_gone_from_an_incomplete_document():
    assert kinds(document(event("A"), event("B")), document(event("B"), complete=False)) == []


def test_what_an_incomplete_document_may_hide_stays_known():
    first, second = document(event("A"), event("B")), document(event("B"), complete=False)
    kept = carry_over_hidden(first, second)
    assert {found.event_id for found in kept.events} == {"A", "B"}
    assert kinds(kept, document(event("B"))) == [("gone", "A")]
    assert carry_over_hidden(first, document()) == document()


def test_letter_case_of_the_id_makes_no_other_event():
    assert kinds(document(event("ABC")), document(event("abc"))) == []


def test_moved_time_type_and_resources_are_changes():
    after = event(not_before=NOON + timedelta(minutes=5), event_type="Redeploy", resources=("vm2",))
    (change,) = changes(document(event()), document(after))
    assert change.kind == "changed"
    assert set(change.fields) == {"not_before", "event_type", "resources"}


def test_the_order_of_resources_and_events_says_nothing():
    before = document(event("A"), event("B"))
    assert kinds(before, document(event("B"), event("A", resources=("vm2", "vm1")))) == []


def test_the_impossible_step_back_is_a_change_and_not_a_new_event():
    (change,) = changes(document(event(status="Started")), document(event()))
    assert (change.kind, change.previous.status) == ("changed", "Started")


def test_one_event_ends_and_another_comes_in_one_step():
    assert kinds(document(event("A")), document(event("B"))) == [("gone", "A"), ("appeared", "B")]


def test_ten_thousand_events_are_compared():
    many = document(*[event(f"ID-{number}") for number in range(10000)])
    assert changes(many, many) == ()
