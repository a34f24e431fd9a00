# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The module hook_runner_info, with a daemon that runs, does not run, is paused, is too old or is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.maintenance.fleet import LATE
from support.maintenance.hook_runners import HookRunners
from support.simulator_process import Simulator

pytestmark = pytest.mark.all


@pytest.fixture
def fleet(azure: Simulator, tmp_path: Path) -> Iterator[HookRunners]:
    made = HookRunners(azure, tmp_path, ("vm1",))
    made.hook("vm1", "prepare/10-drain", ":")
    yield made
    made.close()


def test_hook_runner_info_reads_waits_and_names_a_pause(fleet: HookRunners) -> None:
    fleet.start()
    event = str(fleet.azure.simulator.post("/events", LATE)["id"])
    fleet.wait_for("vm1", event)
    found = fleet.hosts.module("vm1", "hook_runner_info", command=fleet.command("vm1"), wait_for="prepared", timeout=60)
    assert (found["available"], found["state"], found["reason"], found["reached"]) == (True, "running", "", True)
    assert (found["resource_name"], found["leader"], found["paused"]) == ("vm1", "external", None)
    assert (found["maintenance"]["phase"], found["maintenance"]["not_recovered"]) == ("prepared", [])
    (listed,) = found["events"]
    assert listed["event_id"] == event and listed["prepared_state"] == "ok" and listed["prepared"]
    assert (listed["listed"], listed["named"], listed["readable"]) == (True, sorted(listed["resources"]), True)
    # as an asynchronous task, too
    found = fleet.hosts.module("vm1", "hook_runner_info", "-B", "600", "-P", "1", command=fleet.command("vm1"))
    assert found["finished"] and found.get("available"), found
    fleet.daemons["vm1"].command("pause", "--reason", "work")
    # check mode reads, and does not wait
    found = fleet.hosts.module(
        "vm1", "hook_runner_info", "--check", command=fleet.command("vm1"), wait_for="recovered", timeout=600
    )
    assert found["paused"]["reason"] == "work" and not found["reached"] and not found["changed"]


def test_hook_runner_info_does_not_fail_without_a_hook_runner(fleet: HookRunners, tmp_path: Path) -> None:
    command = str(tmp_path / "command")
    found = fleet.hosts.module("vm1", "hook_runner_info", command=command)
    assert (found["available"], found["state"], found["events"]) == (False, "not_installed", [])
    assert found["reason"].startswith(f"{command}: ") and "; " in found["reason"] and not found["changed"]
