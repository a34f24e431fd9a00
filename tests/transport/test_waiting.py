# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A wait for absence needs two good documents in a row: IMDS has several backends, whose documents may differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from azure_scheduled_events import Selection
from azure_scheduled_events.session import ConnectionOptions, ImdsSession
from azure_scheduled_events.waiting import EventWait, WaitResult
from support.transport.scripted import Step, scripted

EVENT = {
    "EventId": "A",
    "EventStatus": "Started",
    "EventType": "Reboot",
    "ResourceType": "VirtualMachine",
    "Resources": ["vm1", "vm2"],
    "NotBefore": "",
}
THERE = {"DocumentIncarnation": 7, "Events": [EVENT]}
NONE: dict[str, Any] = {"DocumentIncarnation": 8, "Events": []}
FAILS = Step(b"", 500)
# incomplete: an entry that cannot be read
PART: dict[str, Any] = {"DocumentIncarnation": 8, "Events": [17]}


def affecting(resources: Any) -> dict[str, Any]:
    return {"DocumentIncarnation": 7, "Events": [{**EVENT, "Resources": resources}]}


class Clock:
    """Time that passes in pauses only."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait(
    *steps: Any, timeout: float = 60.0, interval: float = 1.0, state: str = "absent", ids: list[str] | None = None
) -> tuple[str, WaitResult, int]:
    """(how the wait ended, what it saw, how many documents it asked for)."""
    clock = Clock()
    with scripted(*steps) as server:
        where = ConnectionOptions(server.endpoint, ("2020-07-01",), "vm1", 10.0)
        watch = EventWait(
            state, Selection.of(event_ids=ids), ImdsSession(where, interval, lambda: clock.now, clock.sleep)
        )
        waited = watch.wait(timeout)
        return watch.outcome(waited), waited, len(server.requests)


@pytest.mark.parametrize("ids", [None, ["a"]])
def test_one_document_without_the_event_is_not_the_end(ids: list[str] | None) -> None:
    outcome, waited, asked = wait(THERE, NONE, THERE, NONE, THERE, NONE, NONE, ids=ids)
    assert (outcome, asked, waited.elapsed) == ("reached", 7, 6.0)


@pytest.mark.parametrize("ids", [None, ["a"]])
def test_alternating_documents_never_end_the_wait(ids: list[str] | None) -> None:
    outcome, waited, _asked = wait(*[THERE, NONE] * 40, timeout=30, ids=ids)
    assert outcome == "timeout" and 30 <= waited.elapsed <= 31


def test_nothing_there_takes_two_documents_a_second_apart_at_most() -> None:
    outcome, waited, asked = wait(NONE, interval=60)
    assert (outcome, asked, waited.elapsed) == ("reached", 2, 1.0)


def test_an_unchanged_document_is_an_observation() -> None:
    tagged = Step(json.dumps(NONE).encode(), headers=('ETag: "8"',))
    assert wait(THERE, tagged, Step(b"", 304))[::2] == ("reached", 3)


def test_an_error_between_two_documents_neither_counts_nor_takes_back() -> None:
    outcome, waited, asked = wait(THERE, NONE, FAILS, NONE)
    assert (outcome, waited.errors, asked) == ("reached", 1, 4)


def test_an_incomplete_document_is_no_absence() -> None:
    assert wait(THERE, NONE, PART, NONE, NONE)[::2] == ("reached", 5)


def test_this_vm_missing_once_from_the_resources_is_not_the_end() -> None:
    without = affecting(["vm2"])
    assert wait(THERE, without, THERE, without, without)[::2] == ("reached", 5)


@pytest.mark.parametrize("resources", [None, {"a": 1}, [], 7, ["vm2", None]])
@pytest.mark.parametrize("ids", [None, ["A"]])
def test_resources_that_cannot_be_read_are_unknown(resources: Any, ids: list[str] | None) -> None:
    outcome, _waited, _asked = wait(THERE, affecting(resources), timeout=20, ids=ids)
    assert outcome == "timeout"


def test_unreadable_resources_of_another_event_do_not_matter() -> None:
    assert wait(affecting(None), ids=["B"])[0] == "reached"


@pytest.mark.parametrize(
    "steps, ended", [([NONE], "reached"), ([NONE, THERE], "timeout"), ([NONE, FAILS], "timeout"), ([THERE], "timeout")]
)
def test_no_time_at_all_allows_one_poll_more(steps: list[Any], ended: str) -> None:
    outcome, waited, asked = wait(*steps, timeout=0)
    assert (outcome, asked) == (ended, 1 if steps == [THERE] else 2)
    assert waited.elapsed <= 1


def test_absence_first_seen_at_the_very_end_is_confirmed() -> None:
    outcome, _waited, asked = wait(THERE, THERE, NONE, timeout=2, ids=["A"])
    assert (outcome, asked) == ("reached", 4)


def test_another_state_of_an_event_that_is_gone_ends_the_wait_as_before() -> None:
    assert wait(THERE, NONE, state="scheduled", ids=["A"])[::2] == ("gone", 3)
    assert wait(THERE, NONE, THERE, state="scheduled", ids=["A"], timeout=5)[0] == "timeout"
