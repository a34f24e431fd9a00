# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""No delivery moves an event backwards, and no end is news before all reporters have seen it."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.news import News

NUMBERS = itertools.count()
MOVED = {"not_before": "2026-11-21T12:30:00Z"}


def change(kind, seconds=0, reporter="vm1", delivery=None, outcome=None, **event):
    """Return a change that was observed after so many seconds."""
    status = {"started": "Started", "gone": "Started"}.get(kind, "Scheduled")
    return {
        "id": delivery or str(next(NUMBERS)),
        "change": kind,
        "outcome": outcome,
        "reporter": reporter,
        "reported_by": "notify" if reporter else "event_grid",
        "observed_at": f"2026-11-21T12:{seconds // 60:02d}:{seconds % 60:02d}.000Z",
        "event": {
            "event_id": "Ab-1",
            "event_type": "Reboot",
            "status": status,
            "resources": ["vm1", "vm2"],
            "not_before": "2026-11-21T13:00:00Z",
            **event,
        },
    }


def judged(*changes):
    news = News()
    return [news.judge(item)[0] for item in changes]


# course -> its changes, and whether each is news
COURSES = {
    "state that another vm has reported is not news": [
        (change("appeared"), True),
        (change("appeared", 1, "vm2", event_id="AB-1", resources=["VM2", "_vm1"]), False),
        (change("started", 2), True),
        (change("started", 3, "vm2"), False),
        (change("appeared", 4, "vm3", status="Started"), False),
    ],
    "late or disordered delivery is not news": [
        (change("started", 5), True),
        (change("appeared", 1), False),
        (change("changed", 7, not_before="2026-11-21T14:00:00Z"), False),
        (change("gone", 9), True),
        (change("started", 6), False),
        (change("gone", 9, "vm2"), False),
    ],
    "reporter is the same in any spelling": [
        (change("appeared", 1), True),
        (change("started", 5, "VM1"), True),
        (change("changed", 3, "Vm1"), False),
        (change("gone", 9), True),
        (change("started", 7, "VM1"), False),
    ],
    "end that a vm reports is that of this vm also with an outcome": [
        (change("appeared"), True),
        (change("appeared", 1, "vm2"), False),
        (change("gone", 5, outcome="completed"), False),
        (change("gone", 6, "vm2", outcome="completed"), True),
    ],
    "late report by a clock that is ahead does not reopen an event": [
        (change("appeared"), True),
        (change("appeared", 30, "ahead"), False),
        (change("gone", 5), False),
        (change("gone", 36, "ahead"), True),
        # observed before its own end; later than the end only by the other clock
        (change("started", 35, "ahead"), False),
        (change("gone", 40, "never", event_type="Reboot"), False),
        (change("started", 50, "late"), False),
    ],
    # One clock is behind: its report of the second occurrence has an earlier time than the end of the first one.
    "same id again is news by the clock of its reporter": [
        (change("appeared", 50, "ahead"), True),
        (change("appeared", 2), False),
        (change("gone", 5), False),
        (change("gone", 55, "ahead"), True),
        (change("appeared", 8), True),
        (change("started", 54, "ahead"), False),
        (change("appeared", 58, "ahead"), False),
        (change("gone", 12), False),
        (change("gone", 62, "ahead"), True),
    ],
    "first report of a vm with a known state is not news after it": [
        (change("appeared"), True),
        (change("changed", 2, **MOVED), True),
        (change("appeared", 1, "vm2"), False),
        (change("started", 5), True),
        (change("appeared", 1, "vm3"), False),
        (change("gone", 9, ""), True),
        (change("appeared", 1, "vm4"), False),
    ],
    "state that its reporter returns to is news once": [
        (change("appeared"), True),
        (change("appeared", 1, "vm2"), False),
        (change("changed", 2, **MOVED), True),
        (change("changed", 4), True),
        (change("changed", 3, "vm2", **MOVED), False),
        (change("changed", 5, "vm2"), False),
    ],
    # Salt omits a list of VMs that is too long.
    "report without resources does not hide a complete one": [
        (change("appeared", 9, "minion", resources=[]), True),
        (change("appeared", 1), True),
        (change("changed", 11, "minion", resources=[]), False),
        (change("appeared", 2, "vm2"), False),
    ],
}


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
def test_changes_of_a_course_are_news_or_not(course):
    changes, news = zip(*course)
    assert judged(*changes) == list(news)


def test_repeated_delivery_is_not_news():
    assert judged(change("appeared", delivery="x"), change("gone", 9, delivery="x")) == [True, False]


def test_newer_state_is_news_and_an_older_one_is_not():
    assert judged(
        change("appeared", 1), change("changed", 3, **MOVED), change("changed", 2, not_before="2026-11-21T12:20:00Z")
    ) == [True, True, False]


def test_end_is_news_when_every_reporter_of_the_event_has_reported_it():
    assert judged(
        change("appeared"), change("appeared", 1, "vm2"), change("gone", 5), change("gone", 6), change("gone", 7, "vm2")
    ) == [True, False, False, False, True]


@pytest.mark.parametrize("event_type", ["Preempt", "terminate"])
@pytest.mark.parametrize("name", ["VM1", "_vm1"])
def test_end_does_not_wait_for_a_vm_that_is_lost(event_type, name):
    event = {"event_type": event_type, "resources": [name]}
    assert judged(
        change("appeared", **event), change("appeared", 1, "vm2", **event), change("gone", 5, "vm2", **event)
    ) == [True, False, True]


def test_end_that_event_grid_reports_is_news_at_once():
    assert judged(
        change("appeared"), change("appeared", 1, "vm2"), change("gone", 5, "", outcome="completed"), change("gone", 6)
    ) == [True, False, True, False]


def test_end_of_an_unknown_event_is_news_once():
    assert judged(change("gone"), change("gone", 1, "vm2"), change("started", 0)) == [True, False, False]


def test_same_id_again_after_its_end_is_news():
    assert judged(change("appeared"), change("gone", 5), change("appeared", 60), change("gone", 70)) == [True] * 4


def test_same_id_again_is_another_occurrence():
    """The rules are throttled for each occurrence, so that the second one is maintained too."""
    news = News()
    course = [change("appeared"), change("gone", 5), change("started", 4), change("appeared", 60, delivery="again")]
    assert [news.judge(item).occurrence for item in (*course, course[-1], change("gone", 70))] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("kind", ["appeared", "started", "gone"])
def test_report_by_a_clock_that_is_ahead_or_forged_hides_no_report_of_others(kind):
    assert judged(
        change(kind, 3000, "stranger", resources=["other"]),
        change("appeared", 1),
        change("appeared", 2, "vm2"),
        change("changed", 3, **MOVED),
        change("changed", 2, "vm2", **MOVED),
        change("started", 5),
    ) == [True, True, False, True, False, True]


def test_states_that_are_remembered_are_bounded():
    news = News()
    for minute in range(120):
        # a VM that flaps, or a sender that fills the memory
        news.judge(change("appeared", minute, f"vm{minute}", not_before=f"{minute}"))
    assert not news.judge(change("appeared", 1, "a", not_before="119"))[0]
    assert news.judge(change("appeared", 1, "b", not_before="0"))[0]


def test_second_scheduled_of_event_grid_is_a_change():
    news = News()
    assert news.judge(change("appeared", reporter=""))[1] == "appeared"
    assert news.judge(change("appeared", 5, "", not_before=None))[:2] == (True, "changed")


def test_memory_is_bounded():
    news = News(max_events=2, max_deliveries=3)
    first = change("appeared", event_id="a", delivery="d")
    assert news.judge(first)[0]
    for name in "bc":
        assert news.judge(change("appeared", event_id=name))[0]
    assert not news.judge(change("appeared", event_id="c"))[0]
    # neither its delivery nor its event is remembered
    assert news.judge(first)[0]
