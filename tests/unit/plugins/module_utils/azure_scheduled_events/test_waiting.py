# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits in virtual time: errors do not end them, absence needs documents over some time, and answers may be held."""

from __future__ import annotations

import json

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    ImdsRefused,
    ImdsUnreachable,
    Selection,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.session import (
    ConnectionOptions,
    ImdsSession,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.transport import (
    Response,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.waiting import (
    EventWait,
)

EVENT = {"EventId": "A", "EventStatus": "Scheduled", "EventType": "Reboot", "Resources": ["vm1"], "NotBefore": ""}
HOLD = 50.0


def document(*events):
    return json.dumps({"DocumentIncarnation": len(events), "Events": list(events)}).encode()


THERE, NONE = document(EVENT), document()
FAILS = ImdsUnreachable("lost", connected=True)


class Azure:
    """IMDS in virtual time: its answer at each moment, and the requests that a transport got, which may hold them.

    ``moments``: seconds -> from then on the body, a response of another status, or an error.
    """

    def __init__(self, moments):
        self.now = 0.0
        self.moments = moments
        self.requests = []
        self.limits = []
        self.requests_sent = 0

    def transport(self, *_arguments):
        return self

    def exchange(self, request, total, rest):
        self.requests.append((self.now, request))
        self.limits.append(total)
        self.requests_sent += 1
        ends = self.now + request.hold
        while request.known is not None and self.answer() == request.known and self.now + 1 <= ends:
            self.now += 1
        answer = self.answer()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Response) else Response(200, {}, answer)

    def answer(self):
        return self.moments[max(moment for moment in self.moments if moment <= self.now)]

    def sleep(self, seconds):
        self.now += seconds

    def close(self):
        pass

    def polled_at(self):
        return [when for when, _request in self.requests]

    def wait(self, state, timeout, hold=HOLD, interval=1.0, ids=None):
        """Return the outcome and the result of a wait."""
        options = ConnectionOptions("http://127.0.0.1", ("2020-07-01",), "vm1", timeout or 10.0)
        session = ImdsSession(options, interval, lambda: self.now, self.sleep, self.transport, hold)
        wait = EventWait(state, Selection.parse({"event_ids": ids}), session)
        waited = wait.wait(timeout)
        return wait.outcome(waited), waited


def poll(*moments, timeout=60.0, interval=1.0, state="absent", ids=None):
    """Return the outcome of a wait without held answers, the number of polls and the seconds that it took.

    Each answer lasts a second, the last one for ever.
    """
    azure = Azure({float(second): answer for second, answer in enumerate(moments)})
    outcome, waited = azure.wait(state, timeout, 0.0, interval, ids)
    assert waited.elapsed == azure.now
    return outcome, len(azure.requests), azure.now


def test_state_that_holds_already_takes_one_poll():
    assert poll(THERE, state="present") == ("reached", 1, 0.0)


def test_polls_come_once_an_interval_and_at_the_end_of_the_time_and_get_the_remaining_time():
    azure = Azure({0.0: NONE})
    assert azure.wait("present", 2.5, 0.0)[0] == "timeout"
    assert azure.polled_at() == [0.0, 1.0, 2.0, 2.5]
    assert azure.limits == pytest.approx([2.5, 1.5, 0.5, 0.1])


TROUBLE = {"no answer": FAILS, "empty": b"", "update": Response(410, {}, b""), "refused": Response(400, {}, b"")}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_error_is_not_the_end_of_an_event(trouble):
    azure = Azure({0.0: THERE, 1.0: TROUBLE[trouble], 2.0: THERE, 100.0: NONE})
    outcome, waited = azure.wait("absent", 600.0, 0.0)
    assert (outcome, waited.errors) == ("reached", 1) and azure.now >= 100.0


def test_failing_imds_is_reported_but_does_not_end_the_wait():
    azure = Azure({0.0: FAILS})
    outcome, waited = azure.wait("absent", 60.0, 0.0)
    assert (outcome, waited.document, waited.last_error, waited.elapsed) == ("timeout", None, FAILS, 60.0)
    assert waited.errors == len(azure.requests)
    gaps = [later - earlier for earlier, later in zip(azure.polled_at(), azure.polled_at()[1:5])]
    assert all(gap <= found <= 1.25 * gap for gap, found in zip([1, 2, 4, 8], gaps))


def test_refused_version_is_raised_at_once():
    refusal = Response(400, {}, b'{"error": "Bad request", "newest-versions": ["2020-07-01"]}')
    with pytest.raises(ImdsRefused):
        Azure({0.0: refusal}).wait("present", 600.0)


@pytest.mark.parametrize("interval", [0.25, 1.0, 60.0])
@pytest.mark.parametrize("ids", [None, ["a"]])
def test_absence_from_the_first_document_is_confirmed_two_seconds_later(interval, ids):
    assert poll(NONE, interval=interval, ids=ids) == ("reached", 2, 2.0)


def test_end_after_a_long_interval_is_confirmed_two_seconds_later():
    assert poll(THERE, NONE, interval=10) == ("reached", 3, 12.0)


@pytest.mark.parametrize("resources", [None, {"a": 1}, [], 7, ["vm2", None]])
@pytest.mark.parametrize("ids", [None, ["A"]])
def test_event_with_unreadable_resources_is_not_absent(resources, ids):
    unreadable = document({**EVENT, "Resources": resources})
    # also if no document before has named the VMs
    for moments in ((THERE, unreadable), (unreadable,)):
        assert poll(*moments, timeout=20, ids=ids)[0] == "timeout"


def test_unselected_event_with_unreadable_resources_is_ignored():
    assert poll(document({**EVENT, "Resources": None}), ids=["B"])[0] == "reached"


@pytest.mark.parametrize(
    "moments, ended",
    [
        ([NONE], ("reached", 2, 2.0)),
        ([NONE, THERE], ("timeout", 2, 2.0)),
        ([NONE, FAILS], ("timeout", 2, 2.0)),
        # an entry that cannot be read: the doubt remains
        ([NONE, b'{"DocumentIncarnation":8,"Events":[17]}'], ("timeout", 2, 2.0)),
        ([THERE], ("timeout", 1, 0.0)),
    ],
)
def test_wait_without_time_allows_one_confirming_poll(moments, ended):
    assert poll(*moments, timeout=0) == ended


def test_absence_at_the_end_of_the_time_is_confirmed_by_a_poll_of_a_second():
    azure = Azure({0.0: THERE, 2.0: NONE})
    assert azure.wait("absent", 2.0, 0.0, ids=["A"])[0] == "reached"
    assert azure.polled_at() == [0.0, 1.0, 2.0, 4.0]
    assert azure.limits == pytest.approx([2.0, 1.0, 0.1, 1.0])


def test_wait_for_another_state_ends_when_the_event_is_gone():
    assert poll(THERE, NONE, state="scheduled", ids=["A"])[0] == "reached"
    assert poll(document({**EVENT, "EventStatus": "Started"}), NONE, state="scheduled", ids=["A"])[0] == "gone"


def test_doubt_that_cannot_end_the_wait_changes_neither_interval_nor_time():
    started = document({**EVENT, "EventStatus": "Started"})
    assert poll(started, NONE, state="scheduled", timeout=3) == ("timeout", 4, 3.0)


def test_quiet_wait_sends_few_requests_to_the_transport():
    azure = Azure({0.0: NONE})
    assert azure.wait("present", 900.0)[0] == "timeout"
    assert 900 <= azure.now < 901
    # the first poll is answered at once
    for minute in range(60, 840, 60):
        assert 1 <= sum(minute <= when < minute + 60 for when, _request in azure.requests) <= 2
    assert len(azure.requests) < 30


def test_hold_and_answer_end_with_the_wait():
    azure = Azure({0.0: NONE})
    azure.wait("present", 30.0)
    held = [(when, request.hold) for when, request in azure.requests if request.hold]
    assert held and all(when + hold < 30.5 for when, hold in held)


def test_change_ends_the_hold():
    azure = Azure({0.0: NONE, 70.0: THERE})
    assert azure.wait("present", 900.0)[0] == "reached"
    assert azure.now == 70.0


def test_end_that_a_held_answer_shows_is_confirmed_by_one_poll_two_seconds_later():
    azure = Azure({0.0: THERE, 20.0: NONE})
    assert azure.wait("absent", 900.0)[0] == "reached"
    assert azure.now == 22.0
    assert [(when, request.hold) for when, request in azure.requests if when >= 20.0] == [(22.0, 0.0)]


@pytest.mark.parametrize("error", [FAILS, b"[]"])
def test_poll_after_an_error_is_answered_at_once(error):
    azure = Azure({0.0: NONE, 20.0: error, 30.0: NONE})
    assert azure.wait("present", 100.0)[0] == "timeout"
    after = [request.hold for when, request in azure.requests if 20.0 < when <= 31.0]
    assert after and set(after) == {0.0}
    assert any(request.hold for when, request in azure.requests if when > 31.0)


def test_long_document_is_held_like_each_other():
    long = NONE + b" " * 1024 * 1024
    azure = Azure({0.0: NONE, 20.0: long, 30.0: NONE})
    azure.wait("present", 40.0)
    held = [(request.known, request.hold > 0) for when, request in azure.requests if 20.0 <= when < 30.0]
    assert held == [(long, True)]


def test_first_poll_and_polls_of_another_transport_are_not_held():
    azure = Azure({0.0: NONE})
    azure.wait("present", 10.0, hold=0.0)
    assert {(request.known, request.hold) for _when, request in azure.requests} == {(None, 0.0)}
    azure = Azure({0.0: NONE})
    azure.wait("present", 100.0)
    first, second = azure.requests[0][1], azure.requests[1][1]
    assert (first.known, first.hold) == (None, 0.0)
    assert (second.known, second.hold) == (NONE, HOLD)
