# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The simulated Azure that Salt's tests share, those of the loader and those of a real master."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from salt_lab.azure import Azure, simulated

VMS = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}, "spare": {"kind": "standalone", "vms": {"vm3": {}}}}


@pytest.fixture(scope="session")
def azure() -> Iterator[Azure]:
    with simulated(VMS) as running:
        yield running


@pytest.fixture(autouse=True)
def peace_at_the_end(request: pytest.FixtureRequest) -> Iterator[None]:
    """No event of one test goes on in the next."""
    yield
    if "azure" in request.fixturenames:
        azure: Azure = request.getfixturevalue("azure")
        for event in azure.simulator.get("/events")["events"]:
            if event["status"] in ("Scheduled", "Started"):
                azure.end(event["id"])
