# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A real master and real minions of the Salt in SALT_HOME."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.salt.azure import Azure
from support.salt.cluster import Cluster, cluster
from support.salt.fleet import SPARE, Fleet
from support.salt.minion import Minion
from support.salt.salt_installation import SaltInstallation

NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture(scope="session")
def watching(installation: SaltInstallation, azure: Azure) -> Iterator[Cluster]:
    """vm1 has the beacon in its minion file, vm2 in its pillar; elsewhere is not in Azure.

    vm1 has a timeout for IMDS that is far longer than a beacon may block. Both repeat listed events
    every few seconds.
    """
    with cluster(installation) as here:
        slow = [
            {"interval": 1},
            {"endpoint": azure.endpoints["vm1"]},
            {"timeout": 600},
            {"first_timeout": 600},
            {"repeat": 4},
        ]
        here.minion("vm1", azure_events={"endpoint": azure.endpoints["vm1"]}, beacons={"azure_events": slow})
        here.minion("vm2", azure_events={"endpoint": azure.endpoints["vm2"]})
        here.master.set_pillar(vm2={"beacons": {"azure_events": [{"interval": 1}, {"repeat": 3}]}})
        here.minion("elsewhere", azure_events={"endpoint": NOBODY_LISTENS}, beacons={"azure_events": [{"interval": 1}]})
        here.start()
        here.master.ask_all("*", "saltutil.sync_all")
        yield here


@pytest.fixture(scope="session")
def spare(running: Fleet) -> Minion:
    """A minion after sync_all, whose events the engine leaves to the tests."""
    made = running.cluster.minion(
        SPARE,
        azure_events={"endpoint": running.azure.endpoints[SPARE]},
        beacons={"azure_events": [{"interval": 1}, {"repeat": 4}]},
    )
    running.cluster.start(SPARE)
    made.ask("saltutil.sync_all")
    return made
