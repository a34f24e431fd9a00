# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The changes by a sequence of documents, without thread, disk and clock."""

from __future__ import annotations

import json
import random
from datetime import timedelta

from azure_events_watch.ledger import MAX_ENDED, Ledger, Notice, add_expected, drop_old_ends, mark_announced
from azure_events_watch.ledger_json import ledger_from_json, ledger_to_json
from azure_scheduled_events import EventDocument, parse_document
from support.salt.ledger_documents import NOON, after, document

THERE, EMPTY = document(("A", "Scheduled")), document()
GONE = [EMPTY] * 3


def words(notices: list[Notice]) -> list[str]:
    return [notice.change for notice in notices]


def stored(ledger: Ledger) -> Ledger:
    """Return the ledger as the next process reads it."""
    return ledger_from_json(json.loads(json.dumps(ledger_to_json(ledger))))


def in_turns(one: EventDocument, two: EventDocument, seconds: int) -> list[EventDocument]:
    """Return an hour of documents of two backends, each of which answers for so long."""
    return ([one] * seconds + [two] * seconds) * (1800 // seconds)


def test_event_that_is_first_seen_started() -> None:
    (notice,) = after(document(("A", "Started")))[1]
    assert notice.change == "started"


def test_unknown_status_is_sent_as_changed() -> None:
    assert words(after(document(("A", "Postponed")))[1]) == ["changed"]


def test_change_of_a_field_is_sent_with_its_name() -> None:
    moved = THERE._replace(events=tuple(event._replace(not_before=NOON) for event in THERE.events))
    _scheduled, changed = after(THERE, moved)[1]
    assert (changed.change, changed.fields) == ("changed", ("not_before",))


def test_id_that_reappears_is_a_new_event() -> None:
    notices = after(document(("A", "Started")), *GONE, THERE, *[EMPTY] * 61)[1]
    assert words(notices) == ["started", "gone", "scheduled", "gone"]
    assert notices[0].first_seen == notices[1].first_seen < notices[2].first_seen
    assert (notices[1].outcome, notices[3].outcome) == ("completed", "unknown")


def test_sequence_only_grows() -> None:
    notices = after(document(("A", "Scheduled"), ("B", "Scheduled")), document(("A", "Started")), *GONE)[1]
    numbers = [notice.sequence for notice in notices]
    assert len(numbers) == 5 and numbers == sorted(set(numbers))


def test_end_is_forgotten_after_its_time() -> None:
    ledger = after(THERE, *GONE)[0]
    assert drop_old_ends(ledger, NOON + timedelta(seconds=5), 2) is ledger
    assert drop_old_ends(ledger, NOON + timedelta(seconds=6), 2).ended == ()


def test_ends_are_bounded_and_the_latest_stay() -> None:
    ledger = after(*[one for number in range(150) for one in (document((f"{number:03d}", "Scheduled")), *GONE)])[0]
    assert [entry.key for entry in ledger.ended] == [f"{number:03d}" for number in range(150 - MAX_ENDED, 150)]
    assert ledger.entries == {}


def test_unchanged_document_leaves_the_same_ledger() -> None:
    ledger = after(THERE)[0]
    assert after(THERE, THERE, ledger=ledger)[0] is ledger


def test_event_or_vm_that_one_backend_lacks_causes_few_changes() -> None:
    smaller = THERE._replace(events=tuple(event._replace(resources=("vm2",)) for event in THERE.events))
    larger = THERE._replace(events=tuple(event._replace(resources=("vm1", "vm2")) for event in THERE.events))
    for seconds in (1, 2):
        assert words(after(*in_turns(THERE, EMPTY, seconds))[1]) == ["scheduled"]
        assert words(after(*in_turns(larger, smaller, seconds))[1]) == ["scheduled"]
    for seconds in (3, 30, 60):
        assert words(after(*in_turns(THERE, EMPTY, seconds))[1]) == ["scheduled", "gone", "scheduled"]
        assert words(after(*in_turns(larger, smaller, seconds))[1]) == ["scheduled", "changed", "changed"]
    at_random = random.Random(7)
    for _turn in range(20):
        assert len(after(*[at_random.choice((THERE, EMPTY)) for _poll in range(1000)])[1]) <= 3


def test_next_process_remembers_which_event_came_back() -> None:
    gone = after(THERE, *GONE)[0]
    ledger, notices = after(THERE, ledger=stored(gone))
    assert words(notices) == ["scheduled"]
    assert words(after(*[EMPTY] * 60, ledger=stored(ledger))[1]) == []
    assert words(after(*[EMPTY] * 61, ledger=stored(ledger))[1]) == ["gone"]


def test_expected_event_is_sent_as_gone_only() -> None:
    ledger, notices = after(*GONE, ledger=add_expected(Ledger(7), THERE.events, NOON))
    assert words(notices) == ["gone"] and notices[0].sequence == 8
    assert add_expected(ledger, THERE.events, NOON) is ledger


def test_ledger_round_trip_is_exact() -> None:
    odd = (
        '{"DocumentIncarnation": 3, "Events": [{"EventId": "\\ud800 x", "EventStatus": "Scheduled",'
        ' "EventType": "Freeze", "Resources": ["ä", 7], "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",'
        ' "DurationInSeconds": 9, "EventSource": "Platform", "Description": ""}]}'
    )
    back = parse_document(odd)
    ledger = after(back, *GONE, document(("B", "Scheduled")), back, back, back)[0]
    ledger = mark_announced(ledger, {key: True for key in ledger.entries})
    assert ledger.ended and ledger.entries and ledger.returned and ledger.gone
    assert stored(ledger) == ledger
