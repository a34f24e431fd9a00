# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What happened, told by documents alone: no thread, no disk, no clock."""

from __future__ import annotations

import json
import random
from datetime import timedelta

from azure_events_watch.ledger import MAX_ENDED, Ledger, Notice, add_expected, advance, drop_old_ends, mark_announced
from azure_events_watch.ledger_json import entries_to_json, ledger_from_json
from azure_scheduled_events import parse_document
from support.salt.ledger_documents import NOON, after, document


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


def test_step_back_from_started_needs_two_documents_and_still_ends_as_started() -> None:
    started, back = document(("A", "Started")), document(("A", "Scheduled"))
    assert words(after(started, back, started)[1]) == ["started"]
    notices = after(started, back, back, document(), document(), document(), document())[1]
    assert words(notices) == ["started", "changed", "gone"]
    assert notices[-1].outcome == "ended"


def test_id_that_comes_back_is_a_new_event() -> None:
    there, empty = document(("A", "Scheduled")), document()
    notices = after(there, empty, empty, there, there)[1]
    assert words(notices) == ["scheduled", "gone", "scheduled"]
    assert notices[2].first_seen > notices[0].first_seen


def test_sequence_only_grows() -> None:
    notices = after(document(("A", "Scheduled"), ("B", "Scheduled")), document(("A", "Started")), document())[1]
    numbers = [notice.sequence for notice in notices]
    assert numbers == sorted(set(numbers))


def test_end_is_forgotten_after_its_time() -> None:
    ledger = after(document(("A", "Scheduled")), document(), document())[0]
    assert drop_old_ends(ledger, NOON + timedelta(seconds=4), 2) is ledger
    assert drop_old_ends(ledger, NOON + timedelta(seconds=5), 2).ended == ()


def test_ends_are_bounded_and_the_latest_stay() -> None:
    ledger = after(
        *[one for number in range(150) for one in (document((f"{number:03d}", "Scheduled")), document(), document())]
    )[0]
    assert [entry.key for entry in ledger.ended] == [f"{number:03d}" for number in range(150 - MAX_ENDED, 150)]
    assert ledger.entries == {} and ledger.doubts == {}


def test_changes_of_two_backends_by_turns_are_sent_once() -> None:
    one, two = document(("A", "Scheduled")), document(("A", "Started"))
    assert words(after(*[one, two] * 100)[1]) == ["scheduled", "started"]
    assert words(after(*[one, one, two, two] * 100)[1]) == ["scheduled", "started", "changed"]


def test_backends_that_disagree_about_an_event_do_not_flap() -> None:
    there, empty = document(("A", "Scheduled")), document()
    assert words(after(*[there, empty] * 100)[1]) == ["scheduled"]
    assert words(after(*[there, there, empty, empty] * 100)[1]) == ["scheduled", "gone", "scheduled"]
    at_random = random.Random(7)
    for _turn in range(20):
        notices = after(*[at_random.choice((there, empty)) for _poll in range(1000)])[1]
        assert len(notices) <= 15


def test_event_that_flapped_still_ends() -> None:
    there, empty = document(("A", "Scheduled")), document()
    assert words(after(*[there, there, empty, empty] * 100, *[empty] * 64)[1])[-1] == "gone"


def test_expected_event_is_missed_but_not_announced() -> None:
    (event,) = document(("A", "Scheduled")).events
    ledger, notices = advance(add_expected(Ledger(7), [event], NOON), document(), NOON, lambda one: True)
    assert (notices, set(ledger.doubts)) == ((), {"a"})
    ledger, notices = advance(add_expected(ledger, [event], NOON), document(), NOON, lambda one: True)
    assert words(list(notices)) == ["gone"] and notices[0].sequence == 8
    assert add_expected(ledger, [event], NOON) is ledger


def test_ledger_survives_the_disk_exactly() -> None:
    odd = (
        '{"DocumentIncarnation": 3, "Events": [{"EventId": "\\ud800 x", "EventStatus": "Scheduled", "EventType": "Freeze", "Resources": ["ä", 7],'
        ' "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT", "DurationInSeconds": 9, "EventSource": "Platform", "Description": ""}]}'
    )
    ledger = after(document(("B", "Scheduled")), parse_document(odd), parse_document(odd))[0]
    ledger = mark_announced(ledger, {key: True for key in ledger.entries})
    assert ledger.ended and ledger.entries
    data = json.loads(json.dumps({"sequence": ledger.sequence, "entries": entries_to_json(ledger)}))
    assert ledger_from_json(data) == ledger
