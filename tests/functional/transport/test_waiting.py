# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A wait for absence needs documents over some time, because those of several backends may differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from azure_scheduled_events import Selection
from azure_scheduled_events.session import ConnectionOptions, ImdsSession
from azure_scheduled_events.waiting import EventWait, WaitResult
from support.transport.replies import Answer, serving

EVENT = {
    "EventId": "A",
    "EventStatus": "Started",
    "EventType": "Reboot",
    "ResourceType": "VirtualMachine",
    "Resources": ["vm1", "vm2"],
    "NotBefore": "",
}


def document(*events: Any) -> Answer:
    return Answer(body=json.dumps({"DocumentIncarnation": 7, "Events": events}).encode())


THERE, NONE, FAILS = document(EVENT), document(), Answer(500)


def affecting(resources: Any) -> Answer:
    return document({**EVENT, "Resources": resources})


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait(
    *answers: Answer, timeout: float = 60.0, interval: float = 1.0, state: str = "absent", ids: list[str] | None = None
) -> tuple[str, WaitResult, int]:
    """Return the outcome of the wait, the result, and the number of requested documents."""
    clock = Clock()
    with serving(*answers) as server:
        where = ConnectionOptions(server.url, ("2020-07-01",), "vm1", 10.0)
        watch = EventWait(
            state, Selection.of(event_ids=ids), ImdsSession(where, interval, lambda: clock.now, clock.sleep)
        )
        waited = watch.wait(timeout)
        return watch.outcome(waited), waited, len(server.received)


@pytest.mark.parametrize("interval", [0.25, 1.0, 60.0])
@pytest.mark.parametrize("ids", [None, ["a"]])
def test_absence_from_the_first_document_is_confirmed_two_seconds_later(interval: float, ids: list[str] | None) -> None:
    outcome, waited, polls = wait(NONE, interval=interval, ids=ids)
    assert (outcome, polls, waited.elapsed) == ("reached", 2, 2.0)


def test_end_after_a_long_interval_is_confirmed_two_seconds_later() -> None:
    outcome, waited, polls = wait(THERE, NONE, interval=10)
    assert (outcome, polls, waited.elapsed) == ("reached", 3, 12.0)


@pytest.mark.parametrize("resources", [None, {"a": 1}, [], 7, ["vm2", None]])
@pytest.mark.parametrize("ids", [None, ["A"]])
def test_event_with_unreadable_resources_is_not_absent(resources: Any, ids: list[str] | None) -> None:
    outcome, _waited, _asked = wait(THERE, affecting(resources), timeout=20, ids=ids)
    assert outcome == "timeout"


def test_unselected_event_with_unreadable_resources_is_ignored() -> None:
    assert wait(affecting(None), ids=["B"])[0] == "reached"


@pytest.mark.parametrize(
    "answers, ended",
    [([NONE], "reached"), ([NONE, THERE], "timeout"), ([NONE, FAILS], "timeout"), ([THERE], "timeout")],
)
def test_wait_without_time_allows_one_confirming_poll(answers: list[Answer], ended: str) -> None:
    outcome, waited, polls = wait(*answers, timeout=0)
    assert (outcome, polls) == (ended, 1 if answers == [THERE] else 2)
    assert waited.elapsed <= 2


def test_absence_at_the_end_of_the_time_is_confirmed() -> None:
    outcome, waited, polls = wait(THERE, THERE, NONE, timeout=2, ids=["A"])
    assert (outcome, polls, waited.elapsed) == ("reached", 4, 4.0)


def test_wait_for_another_state_ends_when_the_event_is_gone() -> None:
    assert wait(THERE, NONE, state="scheduled", ids=["A"])[::2] == ("gone", 3)
    assert wait(THERE, NONE, THERE, state="scheduled", ids=["A"], timeout=5)[0] == "timeout"


def test_doubt_that_cannot_end_the_wait_changes_neither_interval_nor_time() -> None:
    outcome, waited, polls = wait(THERE, NONE, state="scheduled", interval=1, timeout=3)
    assert (outcome, polls, waited.elapsed) == ("timeout", 4, 3.0)
