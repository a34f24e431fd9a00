# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The master is away or is killed during a maintenance."""

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-master")]


def test_master_killed_between_preparation_and_approval(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm1"].wait("prepare")
    fleet.step_logs["vm2"].wait("begin")
    fleet.cluster.master.kill()
    fleet.step_logs["vm2"].go_on()
    fleet.step_logs["vm2"].wait("prepare")
    fleet.cluster.start()
    fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_master_away_for_the_whole_end(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    fleet.cluster.master.kill()
    azure.simulator.advance(2)
    azure.end(event_id)
    # one poll per second
    azure.wait_for_polls("vm1", more=35)
    fleet.cluster.start()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_master_that_returns_without_its_file_after_the_end(fleet: Fleet, azure: Azure) -> None:
    """The minions have restarted too: only their records remain."""
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    for daemon in (fleet.cluster.master, fleet.cluster.minions["vm1"], fleet.cluster.minions["vm2"]):
        daemon.kill()
    fleet.engine_file.unlink()
    azure.simulator.advance(2)
    azure.end(event_id)
    fleet.cluster.start()
    for name in ("vm1", "vm2"):
        fleet.step_logs[name].wait("recover")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))
