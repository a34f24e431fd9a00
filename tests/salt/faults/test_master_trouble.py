# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The master has a damaged file of the engine, or slow reactions of others."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet, running_fleet
from support.salt.salt_installation import SaltInstallation

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-trouble")]

# more than the master has threads for reactions, each longer than a Preempt lets wait
SLOW_REACTIONS, SECONDS = 12, 120
SLOW = "runner.test.sleep"


@pytest.fixture(scope="module")
def running(installation: SaltInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet whose master has a slow reaction."""
    slow = tmp_path_factory.mktemp("reactor") / "slow.sls"
    slow.write_text(json.dumps({"wait": {SLOW: [{"args": [{"s_time": SECONDS}]}]}}))
    with running_fleet(installation, reactor=[{"slow/*": [str(slow)]}]) as made:
        yield made


@pytest.mark.parametrize("killed", [True, False], ids=["while the master is down", "under the running engine"])
def test_damaged_file_of_the_engine(fleet: Fleet, azure: Azure, killed: bool) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    if killed:
        fleet.cluster.master.kill()
    fleet.engine_file.write_bytes(b"damaged" * 1000)
    if killed:
        fleet.cluster.master.start()
    second = azure.announce("vm2", "vm3", kind="Freeze", notice="4h")
    with fleet.measured("next event approved"):
        fleet.wait_for(second, "approved")
    assert fleet.engine_file.with_name("engine.sqlite.damaged").exists()
    azure.simulator.advance(2)
    azure.end(event_id)
    fleet.finish(second)
    fleet.step_logs["vm1"].wait("recover")
    assert len(azure.approvals(event_id)) == 1
    fleet.check(second, vm1=(1, 1), vm2=(1, 1), vm3=(1, 1))


def test_slow_reactions_of_others(fleet: Fleet, azure: Azure) -> None:
    bus = fleet.cluster.master.bus
    begun, ended = len(bus.events("salt/run/*/new", fun=SLOW)), len(bus.events("salt/run/*/ret", fun=SLOW))
    for number in range(SLOW_REACTIONS):
        fleet.forge(f"slow/{number}", {})
    bus.wait_for_more("salt/run/*/new", begun, fun=SLOW)
    with fleet.measured("prepared and approved"):
        event_id = azure.announce("vm1", kind="Preempt")
        fleet.wait_for(event_id, "approved")
    assert len(bus.events("salt/run/*/ret", fun=SLOW)) == ended
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1))
