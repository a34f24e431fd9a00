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


def test_hook_runner_info_waits_for_the_end_of_events_with_and_without_hooks(fleet: HookRunners) -> None:
    fleet.start()
    own = str(fleet.azure.simulator.post("/events", LATE)["id"])
    others = str(fleet.azure.simulator.post("/events", {**LATE, "resources": ["vm2"]})["id"])
    for event in (own, others):
        fleet.wait_for("vm1", event)
        fleet.azure.cancel(event)
    found = fleet.hosts.module(
        "vm1", "hook_runner_info", command=fleet.command("vm1"), wait_for="recovered", event_ids=[own], timeout=60
    )
    assert found["reached"] and found["maintenance"] is None and found["events"] == [], found
    (record,) = found["history"]
    assert record["event_id"] == own and record["prepared"] and record["over"] and record["recovered"]
    found = fleet.hosts.module(
        "vm1", "hook_runner_info", command=fleet.command("vm1"), wait_for="prepared", event_ids=[others], timeout=60
    )
    assert found["reached"] and found["history"][0]["event_id"] == others and found["history"][0]["over"], found


@pytest.mark.parametrize(
    ("script", "state"),
    [
        (None, "not_installed"),
        ("kill -9 $$", "no_answer"),
    ],
)
def test_hook_runner_info_does_not_fail_without_a_status(
    fleet: HookRunners, tmp_path: Path, script: str | None, state: str
) -> None:
    command = tmp_path / "command"
    if script is not None:
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
    found = fleet.hosts.module("vm1", "hook_runner_info", command=str(command))
    assert (found["available"], found["state"], found["events"], found["changed"]) == (False, state, [], False)
    assert found["reason"].startswith(f"{command}: ") and "; " in found["reason"]
