# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Which events there are, and which VMs each affects, for any course of documents."""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    EventDocument,
    Observation,
    ScheduledEvent,
    Tracker,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.tracking import (
    GONE_AFTER,
    GONE_AFTER_A_RETURN,
    REMEMBERED_FOR,
)

hypothesis = pytest.importorskip("hypothesis", reason="ansible-test's own Python has no hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

VMS = ["vm1", "vm2", "vm3"]


def event(event_id: str = "a", resources: tuple[str, ...] = ("vm1",), status: str = "Scheduled") -> ScheduledEvent:
    return ScheduledEvent(event_id, "Reboot", status, resources, "VirtualMachine", None, None, None, None)


def document(
    at: float, *events: ScheduledEvent, complete: bool = True, doubtful: tuple[str, ...] = (), by: float | None = None
) -> EventDocument:
    sent_by = at if by is None else by
    return EventDocument(1, events, complete=complete, doubtful=doubtful, sent_at=at, sent_by=sent_by)


def kinds(observation: Observation) -> list[tuple[str, str]]:
    return [(change.kind, change.event.key) for change in observation.changes]


def vms(observation: Observation, key: str = "a") -> set[str]:
    return set(observation.events[key].event.resources)


def test_event_is_gone_after_documents_without_it_that_span_the_time():
    tracker = Tracker()
    assert kinds(tracker.observe(document(0, event()))) == [("appeared", "a")]
    for at in (1.0, 2.0, 2.9):
        seen = tracker.observe(document(at))
        assert not seen.changes and seen.doubt
        assert "a" in seen.events and not seen.events["a"].listed and not seen.events["a"].named
    seen = tracker.observe(document(3.0))
    assert kinds(seen) == [("gone", "a")]
    assert not seen.events and not seen.doubt
    assert tracker.gone == ("a",)


def test_incomplete_document_confirms_no_absence_and_revokes_none():
    tracker = Tracker()
    tracker.observe(document(0, event(resources=("vm1", "vm2"))))
    tracker.observe(document(1, complete=False))
    assert "a" in tracker.observe(document(9, complete=False)).events
    tracker.observe(document(10))
    tracker.observe(document(11, complete=False))
    assert "a" not in tracker.observe(document(12)).events

    tracker.observe(document(13, event("b", ("vm1", "vm2"))))
    for at in (14, 90):
        seen = tracker.observe(document(at, event("b", ("vm1",)), complete=False))
        assert vms(seen, "b") == {"vm1", "vm2"}


def test_an_answer_that_was_held_back_counts_from_its_latest_moment():
    tracker = Tracker()
    tracker.observe(document(0, event()))
    tracker.observe(document(1, by=9))
    assert "a" in tracker.observe(document(9.5)).events
    assert "a" not in tracker.observe(document(11)).events


def test_vm_counts_until_documents_without_it_span_the_time():
    tracker = Tracker()
    tracker.observe(document(0, event(resources=("vm1", "VM2"))))
    seen = tracker.observe(document(1, event()))
    assert vms(seen) == {"vm1", "VM2"} and seen.events["a"].named == {"vm1"}
    assert not seen.changes and seen.doubt
    seen = tracker.observe(document(3, event()))
    assert vms(seen) == {"vm1"} and [change.fields for change in seen.changes] == [("resources",)]


def test_vm_is_gone_as_an_event_is_when_answers_are_held_back_or_incomplete():
    tracker = Tracker()
    tracker.observe(document(0, event(resources=("vm1", "vm2"))))
    tracker.observe(document(1, event(), by=9))
    for at in (9.5, 10):
        assert vms(tracker.observe(document(at, event(), complete=False))) == {"vm1", "vm2"}
    assert vms(tracker.observe(document(10.9, event()))) == {"vm1", "vm2"}
    assert vms(tracker.observe(document(11, event()))) == {"vm1"}


def test_vm_that_is_named_again_is_neither_doubled_nor_in_doubt():
    tracker = Tracker()
    for at in (0, 1, 9):
        seen = tracker.observe(document(at, event(resources=("vm1", "VM2"), status="Scheduled"), event(f"b{at}")))
        assert seen.events["a"].event.resources == ("vm1", "VM2")
    seen = tracker.observe(document(10, *(each.event for each in seen.events.values())))
    assert not seen.doubt and seen.events["a"].event.resources == ("vm1", "VM2")


def test_copy_and_original_do_not_change_each_other():
    first = Tracker()
    for at in (0, 1, 4):
        first.observe(document(at, *([event("a"), event("b")] if at == 0 else [event("b")])))
    second = first.copy()
    seen = second.observe(document(5, event("a"), event("b", ("vm2",))))
    assert vms(seen, "b") == {"vm1", "vm2"} and second.returned == {"a"} and second.gone == ()
    assert first.returned == frozenset() and first.gone == ("a",)
    assert vms(first.observe(document(6, event("b"))), "b") == {"vm1"}


def test_event_that_an_earlier_process_has_seen_gone_is_remembered_for_a_day():
    tracker = Tracker(gone=["a"])
    for at in (50, 50 + REMEMBERED_FOR, 51 + REMEMBERED_FOR):
        assert tracker.gone == ("a",)
        tracker.observe(document(at))
    assert tracker.gone == ()


@pytest.mark.parametrize("names, doubtful", [((), ()), ((), ("a",)), (("vm3", "5"), ("a",))])
def test_unreadable_resources_keep_the_known_vms(names, doubtful):
    tracker = Tracker()
    tracker.observe(document(0, event(resources=("vm1", "vm2"))))
    for at in (1, 2, 90):
        seen = tracker.observe(document(at, event(resources=names), doubtful=doubtful))
        assert vms(seen) == {"vm1", "vm2", *names}
        assert seen.events["a"].listed and not seen.events["a"].readable
    seen = tracker.observe(document(91, event(resources=("vm1", "vm2"))))
    assert seen.events["a"].readable and seen.events["a"].named == {"vm1", "vm2"}


def test_started_stays_whatever_a_slower_backend_says():
    tracker = Tracker()
    tracker.observe(document(0, event()))
    assert kinds(tracker.observe(document(1, event(status="Started")))) == [("started", "a")]
    seen = tracker.observe(document(2, event()._replace(not_before=datetime(2026, 11, 21, tzinfo=timezone.utc))))
    assert seen.events["a"].event == event(status="Started") and not seen.changes


def test_event_is_less_severe_only_after_documents_that_span_the_time():
    freeze = event()._replace(event_type="Freeze")
    tracker = Tracker([freeze])
    course = [(0, event()), (1, freeze), (2, event()), (3, freeze), (4.9, freeze), (5, freeze)]
    seen = [tracker.observe(document(at, each)) for at, each in course]
    assert [each.events["a"].event.event_type for each in seen] == ["Reboot"] * 5 + ["Freeze"]
    assert [each.doubt for each in seen] == [False, True, False, True, True, False]


def test_advice_is_less_severe_and_an_unknown_type_is_shown_at_once():
    after = [event()._replace(event_type=kind) for kind in ("SpotRebalanceRecommendation", "Hibernate")]
    seen = [Tracker([event()]).observe(document(0, each)) for each in after]
    assert [each.events["a"].event.event_type for each in seen] == ["Reboot", "Hibernate"]


def test_what_comes_back_is_new_and_its_next_absence_has_to_last():
    tracker = Tracker()
    tracker.observe(document(0, event(status="Started")))
    tracker.observe(document(1))
    assert kinds(tracker.observe(document(3))) == [("gone", "a")]
    seen = tracker.observe(document(4, event()))
    assert kinds(seen) == [("appeared", "a")] and seen.events["a"].event.status == "Scheduled"
    assert tracker.returned == {"a"} and tracker.gone == ()
    tracker.observe(document(10))
    assert "a" in tracker.observe(document(69)).events
    assert kinds(tracker.observe(document(70))) == [("gone", "a")]


def test_vm_that_comes_back_makes_the_next_absence_of_any_last():
    tracker = Tracker()
    tracker.observe(document(0, event(resources=("vm1", "vm2"))))
    for at in (1, 3):
        tracker.observe(document(at, event()))
    tracker.observe(document(4, event(resources=("vm1", "vm2"))))
    assert tracker.returned == {"a"}
    for at in (5, 64):
        assert vms(tracker.observe(document(at, event()))) == {"vm1", "vm2"}
    assert vms(tracker.observe(document(65, event()))) == {"vm1"}


def test_the_memory_of_what_is_gone_has_a_limit():
    tracker = Tracker()
    tracker.observe(document(0, *[event(str(number)) for number in range(3000)]))
    tracker.observe(document(1))
    tracker.observe(document(3))
    assert len(tracker.gone) == 1000 and "2999" in tracker.gone


def test_the_next_process_counts_the_known_events_as_listed_and_knows_what_came_back():
    known = [event("a", ("vm1", "vm2")), event("b")]
    tracker = Tracker(known, returned={"b"}, gone=["c"])
    seen = tracker.observe(document(100))
    assert set(seen.events) == {"a", "b"} and not seen.changes and seen.documents == 1
    seen = tracker.observe(document(102))
    assert kinds(seen) == [("gone", "a")] and seen.documents == 2
    tracker.observe(document(103, event("C")))
    assert tracker.returned == {"b", "c"}


def test_a_known_event_without_vms_is_not_readable_until_a_document_lists_them():
    tracker = Tracker([event("a", ()), event("b")])
    seen = tracker.observe(document(0))
    assert not seen.events["a"].readable and seen.events["b"].readable
    assert tracker.observe(document(1, event("a"))).events["a"].readable


def test_an_unchanged_body_changes_nothing():
    tracker = Tracker()
    first = document(0, event())
    tracker.observe(first)
    seen = tracker.observe(first._replace(sent_at=1.0, sent_by=1.0))
    assert not seen.changes and seen.documents == 2 and seen.document.sent_at == 1.0


NAMES = st.lists(st.sampled_from(VMS), max_size=3, unique=True).map(tuple)
EVENTS = st.builds(event, st.sampled_from(["a", "A", "b"]), NAMES, st.sampled_from(["Scheduled", "Started"]))
CONTENTS = st.tuples(st.lists(EVENTS, max_size=3, unique_by=lambda each: each.key), st.booleans(), st.booleans())
COURSES = st.lists(st.tuples(CONTENTS, st.sampled_from([1.0, 1.0, 1.0, 5.0, 90.0])), min_size=1, max_size=25)
Course = t.List[t.Tuple[EventDocument, Observation]]


def follow(course: t.Any, change: t.Callable[[ScheduledEvent], ScheduledEvent] = lambda each: each) -> Course:
    tracker, at, seen = Tracker(), 0.0, []
    for (events, complete, doubtful), after in course:
        at += after
        found = [change(each) for each in events]
        unread = tuple(each.key for each in found[:1]) if doubtful else ()
        read = document(at, *found, complete=complete, doubtful=unread)
        seen.append((read, tracker.observe(read)))
    return seen


@settings(max_examples=150)
@given(COURSES)
def test_all_vms_of_the_last_two_documents_count(course):
    seen = follow(course)
    named = {(each.key, vm) for read, _seen in seen[-2:] for each in read.events for vm in each.resources}
    counted = {(key, vm) for key, each in seen[-1][1].events.items() for vm in each.event.resources}
    assert named <= counted


@settings(max_examples=150)
@given(COURSES)
def test_gone_needs_two_complete_documents_and_the_time(course):
    seen = follow(course)
    back: set[str] = set()
    for index, (read, observation) in enumerate(seen):
        for change in observation.changes:
            if change.kind == "gone":
                lacking = []
                for earlier, _seen in reversed(seen[: index + 1]):
                    if earlier.find(change.event.event_id) is not None:
                        break
                    if earlier.complete:
                        lacking.append(earlier.sent_at)
                assert len(lacking) >= 2
                needed = GONE_AFTER_A_RETURN if change.event.key in back else GONE_AFTER
                assert read.sent_at - lacking[-1] >= needed
                back.add(change.event.key)


@settings(max_examples=150)
@given(COURSES)
def test_letter_case_and_order_do_not_count(course):
    def other(each: ScheduledEvent) -> ScheduledEvent:
        names = tuple(name.upper() for name in reversed(each.resources))
        return each._replace(event_id=each.event_id.swapcase(), resources=names)

    one, two = follow(course)[-1][1], follow(course, other)[-1][1]
    assert {key: each.named for key, each in one.events.items()} == {
        key: each.named for key, each in two.events.items()
    }
    assert sorted(kinds(one)) == sorted(kinds(two))


@settings(max_examples=150)
@given(COURSES, st.integers(min_value=0, max_value=24))
def test_a_new_process_ends_no_event_that_the_old_one_would_keep(course, cut):
    old, new, at, seen = Tracker(), Tracker(), 0.0, None
    for index, ((events, complete, _doubtful), after) in enumerate(course):
        at += after
        if index == cut and seen is not None:
            known = [each.event for each in seen.events.values()]
            new = Tracker(known, new.returned, new.gone)
            assert set(seen.events) == {each.key for each in known}
        read = document(at, *events, complete=complete)
        kept, seen = old.observe(read), new.observe(read)
    # an absence that began before the restart may be one that only the old process counts
    returned = old.returned - new.returned
    assert set(kept.events) - returned <= set(seen.events)
