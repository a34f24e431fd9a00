# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""saltutil.sync_all brings a minion and the master all that the tree has."""

from __future__ import annotations

from pathlib import Path

import pytest
from salt_lab.site import REPOSITORY, Site

HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"
pytestmark = pytest.mark.xdist_group("watching")

MINIONS = ("vm1", "vm2", "elsewhere")


def test_functions_and_states_are_there_after_sync_all(watching: Site) -> None:
    minion = watching.minions["vm1"]
    assert {"azure_events.list", "azure_events.approve", "azure_events.wait"} <= set(minion.ask("sys.list_functions", "azure_events"))
    assert set(minion.ask("sys.list_state_functions", "azure_events")) == {
        "azure_events.%s" % state for state in ("approved", "pending", "prepared", "recovered", "settled")
    }


@pytest.mark.parametrize("name", MINIONS)
def test_the_helper_arrives_as_files_of_its_own(watching: Site, name: str) -> None:
    """Its links in the tree lead out of the tree, so that they must not be sent as links."""
    extmods = Path(watching.minions[name].config["extension_modules"])
    arrived = extmods / "utils" / "azure_scheduled_events"
    assert {file.name: file.read_bytes() for file in arrived.glob("*.py")} == {file.name: file.read_bytes() for file in HELPER.glob("*.py")}
    assert [file for file in extmods.rglob("*.py") if file.is_symlink()] == []


def test_the_runner_is_there_after_sync_all(watching: Site) -> None:
    synced = watching.master.run("salt-run", "saltutil.sync_all")
    assert "runners.azure_events" in synced["runners"]
    assert isinstance(watching.master.run("salt-run", "azure_events.fleet"), dict)
