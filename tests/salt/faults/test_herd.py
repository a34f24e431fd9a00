# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One event affects many minions at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet, running_fleet
from support.salt.salt_installation import SaltInstallation

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-herd")]

HERD = tuple(f"vm{number:02d}" for number in range(1, 21))


@pytest.fixture(scope="module")
def running(installation: SaltInstallation) -> Iterator[Fleet]:
    with running_fleet(installation, HERD) as made:
        yield made


def test_herd(fleet: Fleet, azure: Azure) -> None:
    master = fleet.cluster.master
    processes = master.processes()
    with fleet.measured("approved"):
        event_id = azure.announce(*HERD, kind="Reboot", notice="15m")
        fleet.wait_for(event_id, "approved")
    assert master.processes() <= processes
    with fleet.measured("recovered"):
        fleet.finish(event_id)
    jobs = [
        len(master.bus.events("salt/job/*/new", fun=f"azure_events.{function}"))
        for function in ("status", "prepare", "recover")
    ]
    fleet.notes.append(("measured", "%d status, %d prepare, %d recover jobs" % tuple(jobs)))
    assert [
        len(master.bus.events(f"salt/azure_events/{event_id}/{step}")) for step in ("draining", "approved", "recovered")
    ] == [1, 1, 1]
    fleet.check(event_id, **{name: (1, 1) for name in HERD})
