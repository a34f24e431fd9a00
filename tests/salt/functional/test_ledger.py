# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What happened, told by documents alone: no thread, no disk, no clock."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from azure_events_watch.ledger import Ledger, Notice, advance
from azure_events_watch.stored import entries_as_data, ledger_of
from azure_events_watch.telling import AT_ONCE, Told
from azure_scheduled_events import EventDocument, Selection, parse_document

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def document(*events: tuple[str, str], broken: bool = False) -> EventDocument:
    listed: list[Any] = [
        {"EventId": key, "EventStatus": status, "EventType": "Reboot", "ResourceType": "VirtualMachine", "Resources": ["vm1"], "NotBefore": ""}
        for key, status in events
    ]
    return parse_document(json.dumps({"DocumentIncarnation": 1, "Events": listed + ([None] if broken else [])}))


def after(*documents: EventDocument, gone_for: float = 3600) -> tuple[Ledger, list[Notice]]:
    ledger, told = Ledger(0), []
    for number, one in enumerate(documents):
        ledger, notices = advance(ledger, one, NOON + timedelta(seconds=number), lambda event: True, gone_for)
        told += notices
    return ledger, told


def words(notices: list[Notice]) -> list[str]:
    return [notice.change for notice in notices]


def test_gone_needs_two_sights() -> None:
    there, empty = document(("A", "Scheduled")), document()
    assert words(after(there, empty)[1]) == ["scheduled"]
    assert words(after(there, empty, there, empty)[1]) == ["scheduled"]
    assert words(after(there, empty, empty)[1]) == ["scheduled", "gone"]


def test_incomplete_document_ends_nothing() -> None:
    there, broken = document(("A", "Scheduled")), document(broken=True)
    assert words(after(there, broken, broken, broken)[1]) == ["scheduled"]
    assert words(after(there, document(), broken, document())[1]) == ["scheduled", "gone"]


def test_letter_case_of_an_id_says_nothing() -> None:
    assert words(after(document(("a", "Scheduled")), document(("A", "Scheduled")))[1]) == ["scheduled"]


def test_event_that_is_first_seen_started() -> None:
    (notice,) = after(document(("A", "Started")))[1]
    assert notice.change == "started"


def test_unknown_status_is_no_announcement() -> None:
    assert words(after(document(("A", "Postponed")))[1]) == ["changed"]


def test_step_back_from_started_still_ends_as_started() -> None:
    notices = after(document(("A", "Started")), document(("A", "Scheduled")), document(), document())[1]
    assert words(notices) == ["started", "changed", "gone"]
    assert notices[-1].outcome == "ended"


def test_id_that_comes_back_is_a_new_event() -> None:
    there, empty = document(("A", "Scheduled")), document()
    notices = after(there, empty, empty, there)[1]
    assert words(notices) == ["scheduled", "gone", "scheduled"]
    assert notices[2].first_seen > notices[0].first_seen


def test_sequence_only_grows() -> None:
    notices = after(document(("A", "Scheduled"), ("B", "Scheduled")), document(("A", "Started")), document())[1]
    numbers = [notice.sequence for notice in notices]
    assert numbers == sorted(set(numbers))


def test_end_is_forgotten_after_its_time() -> None:
    there, empty = document(("A", "Scheduled")), document()
    assert len(after(there, empty, empty, empty, empty, gone_for=2)[0].entries) == 1
    assert len(after(there, empty, empty, empty, empty, empty, gone_for=2)[0].entries) == 0


def test_ledger_survives_the_disk_exactly() -> None:
    odd = '{"DocumentIncarnation": 3, "Events": [{"EventId": "\\ud800 x", "EventStatus": "Scheduled", "EventType": "Freeze", "Resources": ["ä", 7],' \
          ' "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT", "DurationInSeconds": 9, "EventSource": "Platform", "Description": ""}]}'  # fmt: skip
    ledger = after(parse_document(odd), document())[0]
    data = json.loads(json.dumps({"sequence": ledger.sequence, "entries": entries_as_data(ledger)}))
    assert ledger_of(data) == ledger._replace(absences={})


def test_each_master_is_told() -> None:
    ledger, history = after(document(("A", "Scheduled")))
    for told in (Told(), Told()):
        assert len(told.due(history, ledger.entries, Selection(), 60, 0)) == 1
        assert told.due(history, ledger.entries, Selection(), 60, 59) == []
        assert len(told.due(history, ledger.entries, Selection(), 60, 60)) == 1


def test_no_change_is_skipped_between_two_calls() -> None:
    told = Told()
    assert told.due([], {}, Selection(), 60, 0) == []
    ledger, history = after(document(("A", "Scheduled")), document(("A", "Started")), document(), document())
    assert [one["change"] for one in told.due(history, ledger.entries, Selection(), 60, 1)] == ["scheduled", "started", "gone"]
    assert told.due(history, ledger.entries, Selection(), 60, 2) == []


def test_many_repetitions_keep_nothing_back() -> None:
    told = Told()
    keys = ["%03d" % number for number in range(250)]
    first = document(*[(key, "Scheduled") for key in keys])
    then = document(*[(key, "Started" if key == "240" else "Scheduled") for key in keys])
    ledger, history = after(first)
    heard = [one["event_id"] for now in (1.0, 2.0, 3.0) for one in told.due([], ledger.entries, Selection(), 1, now)]
    assert sorted(set(heard)) == keys
    ledger, history = after(first, then)
    assert told.due(history, ledger.entries, Selection(), 1, 4.0)[0]["status"] == "Started"
    told_again = [one["event_id"] for now in (5.0, 6.0, 7.0) for one in told.due([], ledger.entries, Selection(), 1, now)]
    assert sorted(set(told_again)) == keys


def test_change_of_what_is_still_waiting_to_be_told_comes_first() -> None:
    told = Told()
    keys = ["%03d" % number for number in range(250)]
    first = document(*[(key, "Scheduled") for key in keys])
    told.due([], after(first)[0].entries, Selection(), 60, 0)
    ledger, history = after(first, document(*[(key, "Started" if key == "240" else "Scheduled") for key in keys]))
    due = told.due(history, ledger.entries, Selection(), 60, 1)
    assert (due[0]["event_id"], due[0]["change"], len(due)) == ("240", "started", AT_ONCE)


def test_a_flood_is_told_in_portions_and_in_order() -> None:
    told = Told()
    told.due([], {}, Selection(), 60, 0)
    ledger, history = after(document(*[("%04d" % number, "Scheduled") for number in range(250)]))
    portions = [told.due(history, ledger.entries, Selection(), 60, now) for now in (1.0, 2.0, 3.0, 4.0)]
    assert [len(portion) for portion in portions] == [AT_ONCE, AT_ONCE, 50, 0]
    assert [one["event_id"] for portion in portions for one in portion] == ["%04d" % number for number in range(250)]
