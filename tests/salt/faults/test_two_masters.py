# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Two masters of the same minions, each with an engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from support.salt.azure import Azure
from support.salt.cluster import TREE
from support.salt.fleet import VMS, Fleet, running_fleet
from support.salt.master import Master
from support.salt.salt_installation import SaltInstallation
from support.salt.salt_process import SECOND_ADDRESS
from support.salt.tree_minion import MASTER_DIRS

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-masters")]


@pytest.fixture(scope="module")
def running(installation: SaltInstallation) -> Iterator[Fleet]:
    with running_fleet(installation) as made:
        yield made


@pytest.fixture(scope="module")
def second(running: Fleet, installation: SaltInstallation) -> Iterator[Master]:
    """A master with the key and the minions of the first, as Salt's guide to several masters has it."""
    first = running.cluster.master
    ports = {name: first.config[name] for name in ("publish_port", "ret_port")}
    made = Master(
        running.cluster.folder / "second",
        installation,
        [TREE],
        engines=[{"azure_events": {}}],
        interface=SECOND_ADDRESS,
        **ports,
        **MASTER_DIRS,
    )
    shutil.copytree(first.config["pki_dir"], made.config["pki_dir"])
    shutil.copytree(first.pillar, made.pillar, dirs_exist_ok=True)
    made.start()
    try:
        for name in VMS:
            minion = running.cluster.minions[name]
            minion.kill()
            minion.configure(master=[first.config["interface"], SECOND_ADDRESS])
            minion.start()
        first.wait_for(*VMS)
        made.wait_for(*VMS)
        yield made
    finally:
        made.kill()


@pytest.mark.parametrize("killed", [False, True], ids=["both run", "one is killed"])
def test_two_masters(fleet: Fleet, second: Master, azure: Azure, killed: bool) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    tag = f"salt/azure_events/{event_id}/"
    if killed:
        fleet.step_logs["vm2"].wait("begin")
        fleet.cluster.master.kill()
    else:
        fleet.wait_for(event_id, "approved")
    second.bus.wait(tag + "approved")
    azure.simulator.advance(2)
    azure.end(event_id)
    second.bus.wait(tag + "recovered")
    if killed:
        fleet.cluster.master.start()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(0, 0))
