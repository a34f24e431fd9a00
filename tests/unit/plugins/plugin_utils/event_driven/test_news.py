# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""No delivery moves an event backwards, and no end is news before all reporters have seen it."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.news import News

NUMBERS = itertools.count()


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


def test_repeated_delivery_is_not_news():
    assert judged(change("appeared", delivery="x"), change("gone", 9, delivery="x")) == [True, False]


def test_state_that_another_vm_has_reported_is_not_news():
    assert judged(
        change("appeared"),
        change("appeared", 1, "vm2", event_id="AB-1", resources=["VM2", "_vm1"]),
        change("started", 2),
        change("started", 3, "vm2"),
        change("appeared", 4, "vm3", status="Started"),
    ) == [True, False, True, False, False]


def test_late_or_disordered_delivery_is_not_news():
    assert judged(
        change("started", 5),
        change("appeared", 1),
        change("changed", 7, not_before="2026-11-21T14:00:00Z"),
        change("gone", 9),
        change("started", 6),
        change("gone", 9, "vm2"),
    ) == [True, False, False, True, False, False]


def test_newer_state_is_news_and_an_older_one_is_not():
    moved = {"not_before": "2026-11-21T12:30:00Z"}
    assert judged(
        change("appeared", 1), change("changed", 3, **moved), change("changed", 2, not_before="2026-11-21T12:20:00Z")
    ) == [True, True, False]


def test_end_is_news_when_every_reporter_of_the_event_has_reported_it():
    assert judged(
        change("appeared"), change("appeared", 1, "vm2"), change("gone", 5), change("gone", 6), change("gone", 7, "vm2")
    ) == [True, False, False, False, True]


def test_reporter_is_the_same_in_any_spelling():
    assert judged(
        change("appeared", 1),
        change("started", 5, "VM1"),
        change("changed", 3, "Vm1"),
        change("gone", 9),
        change("started", 7, "VM1"),
    ) == [True, True, False, True, False]


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


def test_end_that_a_vm_reports_is_that_of_this_vm_also_with_an_outcome():
    assert judged(
        change("appeared"),
        change("appeared", 1, "vm2"),
        change("gone", 5, outcome="completed"),
        change("gone", 6, "vm2", outcome="completed"),
    ) == [True, False, False, True]


def test_end_of_an_unknown_event_is_news_once():
    assert judged(change("gone"), change("gone", 1, "vm2"), change("started", 0)) == [True, False, False]


def test_same_id_again_after_its_end_is_news():
    assert judged(change("appeared"), change("gone", 5), change("appeared", 60), change("gone", 70)) == [True] * 4


def test_late_report_by_a_clock_that_is_ahead_does_not_reopen_an_event():
    assert judged(
        change("appeared"),
        change("appeared", 30, "ahead"),
        change("gone", 5),
        change("gone", 36, "ahead"),
        # observed before its own end; later than the end only by the other clock
        change("started", 35, "ahead"),
        change("gone", 40, "never", event_type="Reboot"),
        change("started", 50, "late"),
    ) == [True, False, False, True, False, False, False]


def test_same_id_again_is_another_occurrence():
    """The rules are throttled for each occurrence, so that the second one is maintained too."""
    news = News()
    course = [change("appeared"), change("gone", 5), change("started", 4), change("appeared", 60, delivery="again")]
    assert [news.judge(item).occurrence for item in (*course, course[-1], change("gone", 70))] == [1, 1, 1, 2, 2, 2]


def test_same_id_again_is_news_by_the_clock_of_its_reporter():
    """One clock is behind: its report of the second occurrence has an earlier time than the end of the first one."""
    assert judged(
        change("appeared", 50, "ahead"),
        change("appeared", 2),
        change("gone", 5),
        change("gone", 55, "ahead"),
        change("appeared", 8),
        change("started", 54, "ahead"),
        change("appeared", 58, "ahead"),
        change("gone", 12),
        change("gone", 62, "ahead"),
    ) == [True, False, False, True, True, False, False, False, True]


@pytest.mark.parametrize("kind", ["appeared", "started", "gone"])
def test_report_by_a_clock_that_is_ahead_or_forged_hides_no_report_of_others(kind):
    moved = {"not_before": "2026-11-21T12:30:00Z"}
    assert judged(
        change(kind, 3000, "stranger", resources=["other"]),
        change("appeared", 1),
        change("appeared", 2, "vm2"),
        change("changed", 3, **moved),
        change("changed", 2, "vm2", **moved),
        change("started", 5),
    ) == [True, True, False, True, False, True]


def test_first_report_of_a_vm_with_a_known_state_is_not_news_after_it():
    assert judged(
        change("appeared"),
        change("changed", 2, not_before="2026-11-21T12:30:00Z"),
        change("appeared", 1, "vm2"),
        change("started", 5),
        change("appeared", 1, "vm3"),
        change("gone", 9, ""),
        change("appeared", 1, "vm4"),
    ) == [True, True, False, True, False, True, False]


def test_state_that_its_reporter_returns_to_is_news_once():
    moved = {"not_before": "2026-11-21T12:30:00Z"}
    assert judged(
        change("appeared"),
        change("appeared", 1, "vm2"),
        change("changed", 2, **moved),
        change("changed", 4),
        change("changed", 3, "vm2", **moved),
        change("changed", 5, "vm2"),
    ) == [True, False, True, True, False, False]


def test_states_that_are_remembered_are_bounded():
    news = News()
    for minute in range(120):
        # a VM that flaps, or a sender that fills the memory
        news.judge(change("appeared", minute, f"vm{minute}", not_before=f"{minute}"))
    assert not news.judge(change("appeared", 1, "a", not_before="119"))[0]
    assert news.judge(change("appeared", 1, "b", not_before="0"))[0]


def test_report_without_resources_does_not_hide_a_complete_one():
    """Salt omits a list of VMs that is too long."""
    assert judged(
        change("appeared", 9, "minion", resources=[]),
        change("appeared", 1),
        change("changed", 11, "minion", resources=[]),
        change("appeared", 2, "vm2"),
    ) == [True, True, False, False]


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
