# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A document is requested as a whole, and parsed only if it differs from the last one."""

from __future__ import annotations

import json

import pytest

from azure_scheduled_events import Imds, ImdsError, ImdsRefused
from support.simulator_process import Simulator
from support.transport.fault_helpers import fault, schedule
from support.transport.scripted import Step, scripted


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
    imds = Imds(endpoint)
    assert imds.events().events == ()
    schedule(azure)
    assert len(imds.events().events) == 1


def test_answer_304_is_unknown(azure: Simulator, endpoint: str) -> None:
    fault(azure, "status", status=304, body="")
    with pytest.raises(ImdsRefused, match="304"):
        Imds(endpoint).events()
