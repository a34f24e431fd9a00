# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One simulator for all tests of a file; every test starts without events and faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import simulator_process
from support.simulator_process import Simulator

TWO_VMS = {
    "groups": {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}, "vm3": {}}}},
    # longer than any test: an approved event stays Scheduled
    "knobs": {"rate_limit": 0, "start_delay": "1h"},
}


@pytest.fixture(scope="module")
def service() -> Iterator[Simulator]:
    with simulator_process.start(TWO_VMS) as running:
        yield running


@pytest.fixture
def azure(service: Simulator) -> Iterator[Simulator]:
    yield service
    service.delete("/faults")
    for event in service.get("/events")["events"]:
        if event["status"] in ("Scheduled", "Started") and event["gone_at"] is None:
            service.post(f"/events/{event['id']}/{'cancel' if event['status'] == 'Scheduled' else 'complete'}")


@pytest.fixture
def endpoint(azure: Simulator) -> str:
    return azure.endpoints["vm1"]
