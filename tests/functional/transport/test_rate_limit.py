# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Pacer and Imds at the rate limit of IMDS, over real sockets."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from azure_scheduled_events import Imds
from azure_scheduled_events.pacing import Pacer
from support.simulator_process import Simulator
from support.transport.fault_helpers import requests_of, schedule


@pytest.fixture
def limited(azure: Simulator) -> Iterator[Simulator]:
    azure.post("/knobs", {"rate_limit": 5})
    yield azure
    azure.post("/knobs", {"rate_limit": 0})


def test_pacer_stays_below_the_rate_limit(limited: Simulator, endpoint: str) -> None:
    """T53."""
    event_id = schedule(limited)
    imds = Imds(endpoint)
    pacer = Pacer(imds)
    began = time.monotonic()
    for _round in range(3):
        pacer.call(imds.instance)
        pacer.call(imds.events)
        pacer.call(imds.events)
        pacer.call(imds.approve, event_id)
    assert time.monotonic() - began >= 2
    assert len(requests_of(limited)) == 12
    assert {request["status"] for request in requests_of(limited)} == {200}
