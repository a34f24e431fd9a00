# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""ETag and 304 are used where offered, and never relied on."""

from __future__ import annotations

import json

import pytest

from azure_scheduled_events import Imds, ImdsError, ImdsUnreadable
from support.simulator_process import Simulator
from support.transport.fault_helpers import asked, fault, schedule
from support.transport.scripted import Step, scripted


def statuses(azure: Simulator, start: int) -> list[int]:
    return [request["status"] for request in asked(azure)[start:]]


def test_an_unchanged_document_is_not_sent_again(azure: Simulator, endpoint: str) -> None:
    schedule(azure)
    imds, start = Imds(endpoint), len(asked(azure))
    first, second = imds.events(), imds.events()
    assert statuses(azure, start) == [200, 304]
    assert second.events == first.events and second.incarnation == first.incarnation


def test_an_answer_of_the_same_bytes_is_the_same_document() -> None:
    events = [
        {"EventId": "A", "EventStatus": "Scheduled", "EventType": "Reboot", "Resources": ["vm1"], "NotBefore": ""}
    ]
    one, other = {"DocumentIncarnation": 1, "Events": events}, {"DocumentIncarnation": 1, "Events": []}
    dated = [
        Step(json.dumps(one).encode(), headers=(f"Date: Sat, 21 Nov 2026 10:15:0{int(second)} GMT",))
        for second in range(2)
    ]
    with scripted(*dated, Step(b"{}"), Step(b"", 500), dated[1], other, one) as server:
        imds = Imds(server.endpoint)
        first, second = imds.events(), imds.events()
        assert second.events is first.events and second.warnings is first.warnings
        assert first.server_time is not None and second.server_time is not None
        assert (second.server_time - first.server_time).total_seconds() == 1
        # what lies between takes nothing back
        for _sick in range(2):
            with pytest.raises(ImdsError):
                imds.events()
        assert imds.events().events is first.events
        assert imds.events().events == ()
        assert imds.events().events == first.events


def test_a_changed_document_is_read(azure: Simulator, endpoint: str) -> None:
    imds, start = Imds(endpoint), len(asked(azure))
    assert imds.events().events == ()
    schedule(azure)
    assert len(imds.events().events) == 1
    assert statuses(azure, start) == [200, 200]


def test_once_a_minute_the_whole_document_is_asked_for(azure: Simulator, endpoint: str) -> None:
    ahead = [0.0]
    imds, start = Imds(endpoint, clock=lambda: ahead[0]), len(asked(azure))
    imds.events()
    ahead[0] += 59
    imds.events()
    ahead[0] += 2
    imds.events()
    imds.events()
    assert statuses(azure, start) == [200, 304, 200, 304]


def test_without_etag_it_works_the_same(azure: Simulator, endpoint: str) -> None:
    azure.post("/knobs", {"etag": False})
    try:
        imds, start = Imds(endpoint), len(asked(azure))
        assert imds.events().events == imds.events().events == ()
        assert statuses(azure, start) == [200, 200]
    finally:
        azure.post("/knobs", {"etag": True})


def test_a_304_that_was_not_asked_for_is_unknown(azure: Simulator, endpoint: str) -> None:
    fault(azure, "status", status=304, body="")
    with pytest.raises(ImdsUnreadable, match="304"):
        Imds(endpoint).events()


def test_after_a_bad_answer_the_old_document_is_not_vouched_for(azure: Simulator, endpoint: str) -> None:
    imds, start = Imds(endpoint), len(asked(azure))
    imds.events()
    fault(azure, "html", requests="1")
    with pytest.raises(ImdsUnreadable):
        imds.events()
    imds.events()
    assert statuses(azure, start)[-1] == 200
