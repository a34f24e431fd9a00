# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The changes to report: each once, also by a daemon that was restarted in between."""

from __future__ import annotations

import json
from typing import Any

from azure_scheduled_events.document import EventDocument, parse_document
from hook_runner.push import reported_events
from hook_runner.push.reported_events import Report, Reported, ReportedEvents


def document(*events: dict[str, Any], **members: Any) -> EventDocument:
    usual = {"EventId": "A", "EventStatus": "Scheduled", "EventType": "Reboot", "Resources": ["vm1"]}
    return parse_document(
        json.dumps({"DocumentIncarnation": 1, "Events": [{**usual, **event} for event in events], **members})
    )


NOTHING, LISTED, STARTED = document(), document({}), document({"EventStatus": "Started"})


def as_words(found: list[Report]) -> list[tuple[str, str, int]]:
    return [(kind, reported.event.status, reported.number) for kind, reported in found]


def test_each_change_is_reported_once_with_its_number() -> None:
    events = ReportedEvents({})
    found = [
        as_words(events.compare(each, 0.0)) for each in (NOTHING, LISTED, LISTED, STARTED, NOTHING, NOTHING, NOTHING)
    ]
    assert found == [
        [],
        [("appeared", "Scheduled", 1)],
        [],
        [("started", "Started", 2)],
        [],
        [("gone", "Started", 3)],
        [],
    ]


def test_an_event_that_is_missing_from_one_document_is_not_gone() -> None:
    events = ReportedEvents({})
    events.compare(LISTED, 0.0)
    assert events.compare(NOTHING, 0.0) == [] and events.awaits_observation()
    assert events.compare(LISTED, 0.0) == [] and not events.awaits_observation()
    assert events.compare(NOTHING, 0.0) == []


def test_a_restart_reports_what_changed_since_and_nothing_twice() -> None:
    before = ReportedEvents({})
    before.compare(LISTED, 0.0)
    assert ReportedEvents(before.events).compare(LISTED, 0.0) == []
    assert as_words(ReportedEvents(before.events).compare(STARTED, 0.0)) == [("started", "Started", 2)]
    after = ReportedEvents(before.events)
    after.compare(NOTHING, 0.0)
    assert as_words(after.compare(NOTHING, 0.0)) == [("gone", "Scheduled", 2)]


def test_an_event_that_is_listed_again_has_another_number() -> None:
    events = ReportedEvents({})
    for each in (LISTED, NOTHING, NOTHING):
        events.compare(each, 5.0)
    assert as_words(ReportedEvents(events.events).compare(LISTED, 6.0)) == [("appeared", "Scheduled", 3)]


def test_unreadable_resources_are_no_change() -> None:
    events = ReportedEvents({})
    events.compare(LISTED, 0.0)
    assert events.compare(document({"Resources": [7]}), 0.0) == []
    assert events.events["a"].event.resources == ("vm1",)


def test_ended_events_are_forgotten_by_age_and_number() -> None:
    events = ReportedEvents({})
    for each in (LISTED, NOTHING, NOTHING):
        events.compare(each, 5.0)
    assert events.forget_ended(5.0 + reported_events.KEPT_SECONDS) == []
    assert events.forget_ended(6.0 + reported_events.KEPT_SECONDS) == ["a"] and events.events == {}
    event = LISTED.events[0]
    many = {str(n): Reported(event, 1, float(n)) for n in range(reported_events.KEPT_EVENTS + 2)}
    assert sorted(ReportedEvents(many).forget_ended(5.0)) == ["0", "1"]
