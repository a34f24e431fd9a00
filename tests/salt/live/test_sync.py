# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""saltutil.sync_all copies all modules of the tree to a minion and the master."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.repository import REPOSITORY
from support.salt.cluster import Cluster
from support.salt.master import Master, Refused
from support.salt.minion import Minion
from support.wait import wait_until

HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"
pytestmark = pytest.mark.xdist_group("watching")

MINIONS = ("vm1", "vm2", "elsewhere")


def test_functions_and_states_are_there_after_sync_all(spare: Minion) -> None:
    assert {"azure_events.list", "azure_events.approve", "azure_events.wait"} <= set(
        spare.ask("sys.list_functions", "azure_events")
    )
    assert set(spare.ask("sys.list_state_functions", "azure_events")) == {
        f"azure_events.{state}" for state in ("approved", "pending", "prepared", "recovered", "settled")
    }


@pytest.mark.all
@pytest.mark.parametrize("name", MINIONS)
def test_the_helper_arrives_as_files_of_its_own(watching: Cluster, name: str) -> None:
    """Links in the tree lead out of it: they must not be sent as links."""
    extmods = Path(watching.minions[name].config["extension_modules"])
    arrived = extmods / "utils" / "azure_scheduled_events"
    assert {file.name: file.read_bytes() for file in arrived.glob("*.py")} == {
        file.name: file.read_bytes() for file in HELPER.glob("*.py")
    }
    assert [file for file in extmods.rglob("*.py") if file.is_symlink()] == []


@pytest.fixture(scope="module")
def synced(watching: Cluster) -> Master:
    """A master after two sync commands, with an error in its configuration."""
    master = watching.master
    assert "engines.azure_events" in master.run("salt-run", "saltutil.sync_engines")
    assert "utils.azure_events_engine.reducer" in master.run("salt-run", "saltutil.sync_utils")
    assert "runners.azure_events" in master.run("salt-run", "saltutil.sync_runners")
    return master


@pytest.mark.all
def test_runner_names_the_remedy_without_an_engine(synced: Master) -> None:
    with pytest.raises(Refused, match="add 'azure_events: {}' to 'engines'"):
        synced.run_runner("azure_events.fleet")


@pytest.mark.all
def test_engine_names_the_problem_of_its_configuration(watching: Cluster, synced: Master) -> None:
    synced.configure(engines=[{"azure_events": {}}], azure_events={"awnser": 5})
    synced.kill()
    watching.start()
    with pytest.raises(Refused, match="unknown key 'awnser'; did you mean answer?"):
        synced.run_runner("azure_events.fleet")


@pytest.mark.all
def test_the_engine_knows_the_fleet(watching: Cluster, synced: Master) -> None:
    synced.configure(azure_events={"answer": "10s"})
    synced.kill()
    watching.start()

    def names() -> dict[str, str | None]:
        return {row["minion"]: row["vm"] for row in synced.run_runner("azure_events.fleet")["rows"]}

    wait_until(lambda: names() == {"vm1": "vm1", "vm2": "vm2", "elsewhere": None}, "the names of the fleet")
