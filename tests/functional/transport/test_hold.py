# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A transport of another kind, which may hold back the answer to a poll while the document is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from azure_scheduled_events import ImdsError, Selection
from azure_scheduled_events.errors import ImdsUnreachable
from azure_scheduled_events.session import ConnectionOptions, ImdsSession
from azure_scheduled_events.transport import Request, Response, TransportInterface
from azure_scheduled_events.waiting import EventWait

EVENT = {"EventId": "A", "EventStatus": "Scheduled", "EventType": "Reboot", "Resources": ["vm1"], "NotBefore": ""}
HOLD = 50.0


def document(*events: dict[str, Any]) -> bytes:
    return json.dumps({"DocumentIncarnation": len(events), "Events": list(events)}).encode()


class Azure:
    """IMDS in virtual time: its document at each moment, and the requests that a holding transport got.

    ``moments``: seconds -> the body from then on, or an error.
    """

    def __init__(self, moments: dict[float, bytes | ImdsError]) -> None:
        self.now = 0.0
        self.moments = moments
        self.requests: list[tuple[float, Request]] = []
        self.requests_sent = 0

    def transport(self, *_arguments: object) -> TransportInterface:
        return self

    def exchange(self, request: Request, total: float, rest: float) -> Response:
        self.requests.append((self.now, request))
        self.requests_sent += 1
        ends = self.now + request.hold
        while request.known is not None and self.answer() == request.known and self.now + 1 <= ends:
            self.now += 1
        answer = self.answer()
        if isinstance(answer, ImdsError):
            raise answer
        return Response(200, {}, answer)

    def answer(self) -> bytes | ImdsError:
        return self.moments[max(moment for moment in self.moments if moment <= self.now)]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def close(self) -> None:
        pass


def wait(azure: Azure, state: str, timeout: float, hold: float = HOLD) -> str:
    options = ConnectionOptions("http://127.0.0.1", ("2020-07-01",), "vm1", timeout)
    session = ImdsSession(options, 1.0, lambda: azure.now, azure.sleep, azure.transport, hold)
    watch = EventWait(state, Selection.of(), session)
    return watch.outcome(watch.wait(timeout))


def test_quiet_wait_sends_few_requests_to_the_transport() -> None:
    azure = Azure({0.0: document()})
    assert wait(azure, "present", 900.0) == "timeout"
    assert 900 <= azure.now < 901
    # the first poll is answered at once
    for minute in range(60, 840, 60):
        assert 1 <= sum(minute <= when < minute + 60 for when, _request in azure.requests) <= 2
    assert len(azure.requests) < 30


def test_hold_and_answer_end_with_the_wait() -> None:
    azure = Azure({0.0: document()})
    wait(azure, "present", 30.0)
    held = [(when, request.hold) for when, request in azure.requests if request.hold]
    assert held and all(when + hold < 30.5 for when, hold in held)


def test_change_ends_the_hold() -> None:
    azure = Azure({0.0: document(), 70.0: document(EVENT)})
    assert wait(azure, "present", 900.0) == "reached"
    assert azure.now == 70.0


def test_end_that_a_held_answer_shows_is_confirmed_by_one_poll_two_seconds_later() -> None:
    azure = Azure({0.0: document(EVENT), 20.0: document()})
    assert wait(azure, "absent", 900.0) == "reached"
    assert azure.now == 22.0
    assert [(when, request.hold) for when, request in azure.requests if when >= 20.0] == [(22.0, 0.0)]


@pytest.mark.parametrize("error", [ImdsUnreachable("lost", connected=True), b"[]"])
def test_poll_after_an_error_is_answered_at_once(error: Any) -> None:
    azure = Azure({0.0: document(), 20.0: error, 30.0: document()})
    assert wait(azure, "present", 100.0) == "timeout"
    after = [request.hold for when, request in azure.requests if 20.0 < when <= 31.0]
    assert after and set(after) == {0.0}
    assert any(request.hold for when, request in azure.requests if when > 31.0)


def test_document_that_is_too_long_to_be_kept_is_not_held() -> None:
    """A transport that held the one before it would not return when that comes back."""
    long = document() + b" " * 1024 * 1024
    azure = Azure({0.0: document(), 20.0: long, 30.0: document()})
    wait(azure, "present", 40.0)
    holds = {request.hold for when, request in azure.requests if 20.0 < when < 30.0}
    assert holds == {0.0}


def test_first_poll_and_polls_of_another_transport_are_not_held() -> None:
    azure = Azure({0.0: document()})
    wait(azure, "present", 10.0, hold=0.0)
    assert {(request.known, request.hold) for _when, request in azure.requests} == {(None, 0.0)}
    azure = Azure({0.0: document()})
    wait(azure, "present", 100.0)
    first, second = azure.requests[0][1], azure.requests[1][1]
    assert (first.known, first.hold) == (None, 0.0)
    assert (second.known, second.hold) == (document(), HOLD)
