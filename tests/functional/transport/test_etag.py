# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""ETag and 304 are used if the server offers them, but not relied on."""

from __future__ import annotations

import json

import pytest

from azure_scheduled_events import Imds, ImdsError, ImdsUnreadable
from support.simulator_process import Simulator
from support.transport.fault_helpers import fault, requests_of, schedule
from support.transport.scripted import Step, scripted


def statuses(azure: Simulator, start: int) -> list[int]:
    return [request["status"] for request in requests_of(azure)[start:]]


def test_unchanged_document_is_answered_by_304(azure: Simulator, endpoint: str) -> None:
    schedule(azure)
    imds, start = Imds(endpoint), len(requests_of(azure))
    first, second = imds.events(), imds.events()
    assert statuses(azure, start) == [200, 304]
    assert second.events == first.events and second.incarnation == first.incarnation


def test_answer_of_the_same_bytes_returns_the_same_document() -> None:
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
        # another document in between does not matter
        for _sick in range(2):
            with pytest.raises(ImdsError):
                imds.events()
        assert imds.events().events is first.events
        assert imds.events().events == ()
        assert imds.events().events == first.events


def test_changed_document_is_read(azure: Simulator, endpoint: str) -> None:
    imds, start = Imds(endpoint), len(requests_of(azure))
    assert imds.events().events == ()
    schedule(azure)
    assert len(imds.events().events) == 1
    assert statuses(azure, start) == [200, 200]


def test_whole_document_is_requested_once_a_minute(azure: Simulator, endpoint: str) -> None:
    ahead = [0.0]
    imds, start = Imds(endpoint, clock=lambda: ahead[0]), len(requests_of(azure))
    imds.events()
    ahead[0] += 59
    imds.events()
    ahead[0] += 2
    imds.events()
    imds.events()
    assert statuses(azure, start) == [200, 304, 200, 304]


def test_document_without_etag_is_read(azure: Simulator, endpoint: str) -> None:
    azure.post("/knobs", {"etag": False})
    try:
        imds, start = Imds(endpoint), len(requests_of(azure))
        assert imds.events().events == imds.events().events == ()
        assert statuses(azure, start) == [200, 200]
    finally:
        azure.post("/knobs", {"etag": True})


def test_unrequested_304_is_unknown(azure: Simulator, endpoint: str) -> None:
    fault(azure, "status", status=304, body="")
    with pytest.raises(ImdsUnreadable, match="304"):
        Imds(endpoint).events()


def test_cached_document_is_dropped_after_a_bad_answer(azure: Simulator, endpoint: str) -> None:
    imds, start = Imds(endpoint), len(requests_of(azure))
    imds.events()
    fault(azure, "html", requests="1")
    with pytest.raises(ImdsUnreadable):
        imds.events()
    imds.events()
    assert statuses(azure, start)[-1] == 200
