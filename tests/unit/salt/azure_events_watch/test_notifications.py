# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The notifications of a beacon by ticks, without thread, disk and clock."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from azure_events_watch.ledger import Ledger, mark_announced
from azure_events_watch.message_size import MAX_BYTES, MAX_EVENTS, fit_to_tick
from azure_events_watch.notifications import NotificationQueue, Snapshot
from azure_scheduled_events import EventDocument, Selection
from support.salt.ledger_documents import after, document

Events = list[dict[str, Any]]
GONE = [document()] * 3


def seen(*documents: EventDocument, before: Snapshot = Snapshot(), **more: Any) -> Snapshot:
    ledger, notices = after(*documents)
    return Snapshot(
        ledger.entries,
        ledger.ended,
        (*before.history, *(one for one in notices if one.sequence > len(before.history))),
        "vm1",
        **more,
    )


def take_due(
    queue: NotificationQueue, snapshot: Snapshot, now: float, repeat: float = 60, selection: Selection = Selection()
) -> Events:
    return queue.take_due(snapshot, selection, repeat, now, {"resource_name": "vm1"})[0]


def ids(events: Events) -> list[str]:
    return [event["event_id"] for event in events]


def changes(events: Events) -> list[str]:
    return [event["change"] for event in events]


def many(count: int, status: str = "Scheduled") -> EventDocument:
    return document(*[(f"{number:04d}", status) for number in range(count)])


def test_each_master_is_sent_the_listed_events() -> None:
    snapshot = seen(document(("A", "Scheduled")))
    for queue in (NotificationQueue(), NotificationQueue()):
        assert [len(take_due(queue, snapshot, now)) for now in (0, 59, 60)] == [1, 0, 1]


def test_nothing_is_due_before_its_time_until_something_changes() -> None:
    queue, snapshot = NotificationQueue(), seen(document(("A", "Scheduled")))
    assert queue.is_due(snapshot, 0)
    take_due(queue, snapshot, 0)
    assert [queue.is_due(snapshot, now) for now in (1, 59, 60)] == [False, False, True]
    assert queue.is_due(snapshot._replace(), 1)


def test_ended_events_are_never_due() -> None:
    queue = NotificationQueue()
    there = many(100)
    first = seen(there)
    take_due(queue, first, 0)
    over = seen(there, *GONE, before=first)
    assert changes(take_due(queue, over, 1)) == 100 * ["gone"]
    assert take_due(queue, over, 2) == [] and not queue.is_due(over, 10**9)


def test_no_change_is_skipped_between_two_calls() -> None:
    queue = NotificationQueue()
    assert take_due(queue, Snapshot(), 0) == []
    snapshot = seen(document(("A", "Scheduled")), document(("A", "Started")), *GONE)
    assert changes(take_due(queue, snapshot, 1)) == ["scheduled", "started", "gone"]
    assert take_due(queue, snapshot, 2) == []


def test_end_is_sent_after_a_restart_only_if_it_was_announced() -> None:
    snapshot = seen(document(("A", "Scheduled")), *GONE)
    assert take_due(NotificationQueue(), snapshot, 0) == []
    ledger: Ledger = mark_announced(after(document(("A", "Scheduled")), *GONE)[0], {"a": True})
    queue = NotificationQueue()
    assert changes(take_due(queue, snapshot._replace(ended=ledger.ended), 0)) == ["gone"]
    assert take_due(queue, snapshot._replace(ended=ledger.ended), 10**6) == []


@pytest.mark.parametrize("selected", [True, False])
def test_end_of_a_prepared_event_is_repeated_without_limit(selected: bool) -> None:
    queue = NotificationQueue()
    snapshot = seen(document(("A", "Scheduled")), *GONE, prepared=frozenset(("a",)))
    snapshot = snapshot._replace(ended=(snapshot.ended[0]._replace(selected=selected),))
    times = [now for now in range(0, 7200, 10) if take_due(queue, snapshot, now)]
    assert times[:4] == [0, 60, 180, 420] and {two - one for one, two in itertools.pairwise(times[4:])} == {600}


def test_take_due_returns_what_was_sent() -> None:
    queue, there = NotificationQueue(), document(("A", "Scheduled"))
    first = seen(there)
    assert queue.take_due(first, Selection(), 60, 0, {})[1] == {"a": True}
    assert queue.take_due(seen(there, *GONE, before=first), Selection(), 60, 1, {})[1] == {"a": False}


def test_many_repeats_do_not_delay_changes() -> None:
    queue, first = NotificationQueue(), seen(many(250))
    sent = [key for now in (1.0, 2.0, 3.0) for key in ids(take_due(queue, first, now, repeat=1))]
    assert sorted(set(sent)) == sorted(f"{number:04d}" for number in range(250))
    started = document(*[(f"{number:04d}", "Started" if number == 240 else "Scheduled") for number in range(250)])
    snapshot = seen(many(250), started, before=first._replace(history=seen(many(250)).history))
    assert take_due(queue, snapshot, 4.0, repeat=1)[0]["status"] == "Started"
    again = [key for now in (5.0, 6.0, 7.0) for key in ids(take_due(queue, snapshot, now, repeat=1))]
    assert len(set(again)) == 250


def test_flood_is_sent_in_batches_and_in_order() -> None:
    queue = NotificationQueue()
    take_due(queue, Snapshot(), 0)
    snapshot = seen(many(250))
    portions = [ids(take_due(queue, snapshot, now)) for now in (1.0, 2.0, 3.0, 4.0)]
    assert all(len(portion) <= MAX_EVENTS for portion in portions) and portions[-1] == []
    assert [key for portion in portions for key in portion] == [f"{number:04d}" for number in range(250)]


def test_unselected_status_is_not_sent() -> None:
    queue, snapshot = NotificationQueue(), seen(document(("A", "Scheduled")))
    assert take_due(queue, snapshot, 0, selection=Selection(statuses=("started",))) == []
    assert take_due(NotificationQueue(), snapshot, 0, selection=Selection(statuses=("scheduled",))) != []


@pytest.mark.parametrize(
    ("count", "names", "description"), [(100, 100, 100), (300, 3, 10), (3, 9000, 10), (2, 1, 300000), (5, 100, 30000)]
)
def test_no_tick_has_more_than_64_kb_and_nothing_is_lost(count: int, names: int, description: int) -> None:
    events = many(count)
    large = EventDocument(
        1,
        tuple(
            event._replace(
                resources=tuple(f"vmss_{number:06d}" for number in range(names)), description="\u00e4" * description
            )
            for event in events.events
        ),
    )
    queue, snapshot = NotificationQueue(), seen(large)
    sent: list[str] = []
    for now in range(1000):
        fired = take_due(queue, snapshot, now, repeat=10**6)
        assert len(json.dumps(fired)) <= MAX_BYTES + 4 * len(fired)
        if not fired:
            break
        sent += ids(fired)
    assert sent == [f"{number:04d}" for number in range(count)]


def test_resources_of_one_event_that_are_too_many_are_replaced_by_their_number() -> None:
    data, size = fit_to_tick({"event_id": "A", "resources": [f"vmss_{number:06d}" for number in range(9000)]})
    assert data == {"event_id": "A", "resources_omitted": 9000} and size < 100
    data, _size = fit_to_tick({"event_id": "A", "resources": ["vm1"] * 100})
    assert data["resources"] == ["vm1"] * 100


def test_long_texts_are_cut_and_named() -> None:
    data, size = fit_to_tick(
        {
            "event_id": "x" * 10**6,
            "description": "\U0001f600" * 10**5,
            "status": "Scheduled",
            "resources": ["y" * 10**6],
        }
    )
    assert data["cut"] == ["event_id", "description"] and data["resources_omitted"] == 1 and size < 10000
    assert data["status"] == "Scheduled" and "x" * 4000 in data["event_id"]
    assert "cut" not in fit_to_tick({"description": "x" * 4000, "resources": ["y" * 4000]})[0]
