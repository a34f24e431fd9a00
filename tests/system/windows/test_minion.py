# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A minion of Windows from the announcement of an event to the recovery, with a master on Linux."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.repository import REPOSITORY
from support.salt.azure import Azure
from support.windows.windows_minion import WindowsMinion

pytestmark = pytest.mark.all

HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"


@pytest.fixture(autouse=True)
def clean(minion: WindowsMinion, azure: Azure) -> Iterator[None]:
    """Begin each test without files of earlier steps, and end its events."""
    for name in ("ran", "marked"):
        (minion.wine.drive / name).unlink(missing_ok=True)
    yield
    for event in azure.simulator.get("/events")["events"]:
        if event["status"] in ("Scheduled", "Started"):
            azure.end(event["id"])


def outcome(minion: WindowsMinion, function: str, *words: Any) -> str:
    answer = minion.ask("azure_events." + function, *words)
    assert isinstance(answer, dict), answer
    found: str = answer["outcome"]
    return found


def ran(minion: WindowsMinion) -> list[str]:
    file = minion.wine.inside(r"C:\ran")
    return file.read_text(encoding="utf-8").split() if file.exists() else []


def recovered(minion: WindowsMinion, azure: Azure, event_id: str) -> None:
    """End an event, and recover the minion from it."""
    azure.end(event_id)
    assert outcome(minion, "recover", event_id) == "recovered"


def test_sync_all_brings_the_helper_and_the_modules(minion: WindowsMinion) -> None:
    arrived = minion.cache / "extmods" / "utils" / "azure_scheduled_events"
    assert {file.name: file.read_bytes() for file in arrived.glob("*.py")} == {
        file.name: file.read_bytes() for file in HELPER.glob("*.py")
    }
    assert minion.ask("grains.get", "kernel") == "Windows"
    assert {"azure_events.prepare", "azure_events.list"} <= set(minion.ask("sys.list_functions", "azure_events"))


def test_event_is_sent_from_its_announcement_to_its_end(minion: WindowsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1", kind="Redeploy")
    scheduled = minion.wait_for_event("scheduled", event_id=event_id)
    assert (scheduled["event_type"], scheduled["resource_name"]) == ("Redeploy", "vm1")
    azure.start(event_id)
    assert minion.wait_for_event("started", event_id=event_id)["status"] == "Started"
    azure.end(event_id)
    assert minion.wait_for_event("gone", event_id=event_id)["outcome"] == "completed"


def test_minion_prepares_approves_and_recovers(minion: WindowsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    prepared = minion.ask("azure_events.prepare", event_id)
    assert (prepared["outcome"], [step["outcome"] for step in prepared["steps"]]) == ("prepared", ["done", "done"])
    assert ran(minion) == ["prepare"] and minion.wine.inside(r"C:\marked").exists()
    assert outcome(minion, "prepare", event_id) == "already_prepared"
    assert outcome(minion, "approve_prepared", event_id, ["vm1"]) == "approved"
    assert azure.approvals(event_id) == ["vm1"]
    azure.simulator.advance(2)
    recovered(minion, azure, event_id)
    assert ran(minion) == ["prepare", "recover"]


def test_preparation_is_void_after_a_reboot(minion: WindowsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert outcome(minion, "prepare", event_id) == "prepared"
    minion.kill()
    minion.start()
    assert outcome(minion, "prepare", event_id) == "already_prepared"
    minion.reboot()
    assert outcome(minion, "approve_prepared", event_id, ["vm1"]) == "not_prepared"
    assert outcome(minion, "prepare", event_id) == "prepared"
    assert ran(minion) == ["prepare", "prepare"]
    recovered(minion, azure, event_id)
