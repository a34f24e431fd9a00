# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules in edge cases: empty selections, other VMs, incomplete documents, missing libraries and names."""

from __future__ import annotations

import json
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import simulator_process
from support.ansible_hosts import Hosts
from support.module_play import Run, run_modules
from support.simulator_process import Simulator

# the fixtures of this file run one play for all of its tests
pytestmark = pytest.mark.xdist_group("module_edge_cases")

EMPTY = ("event_ids", "types", "statuses", "sources")
ALONE = ("empty", "incomplete", "no-name")
# an entry that cannot be read
INCOMPLETE = json.dumps({"DocumentIncarnation": 3, "Events": [{"EventId": None}]})

Results = dict[str, dict[str, Any]]


def runs_of(endpoints: dict[str, str], folder: Path) -> Iterator[tuple[str, Run]]:
    approve: dict[str, Any] = {"endpoint": endpoints["empty"], "receipts": str(folder / "receipts")}
    for option in EMPTY:
        yield f"empty {option}", Run("event_approve", {**approve, option: []})
    yield "empty policy_file", Run("event_approve", {**approve, "policy_file": ""})
    others = {**approve, "endpoint": endpoints["shared"], "policy": "documented"}
    yield "event of two VMs", Run("event_approve", others)
    yield "incomplete info", Run("event_info", {"endpoint": endpoints["incomplete"]})
    bare = {"vars": {"ansible_python_interpreter": str(folder / "bare" / "bin" / "python")}}
    yield "facts without requests", Run("event_facts", {"endpoint": endpoints["empty"]}, bare)
    yield "info without requests", Run("event_info", {"endpoint": endpoints["empty"]}, bare)
    yield "no name", Run("event_info", {"endpoint": endpoints["no-name"], "affects": ["any"]})


@pytest.fixture(scope="module")
def azure() -> Iterator[Simulator]:
    """Azure with an event for each VM."""
    groups: dict[str, Any] = {vm: {"kind": "standalone", "vms": {vm: {}}} for vm in ALONE}
    groups["pair"] = {"kind": "availability_set", "vms": {"shared": {}, "other": {}}}
    events = [{"name": vm, "type": "Reboot", "resources": [vm], "source": "User"} for vm in ALONE]
    events.append({"name": "shared", "type": "Reboot", "resources": ["shared", "other"], "source": "User"})
    scenario = {"groups": groups, "events": events, "knobs": {"rate_limit": 0}}
    with simulator_process.start(scenario, args=["--clock", "manual"]) as running:
        running.post("/faults", {"kind": "server-error", "route": "instance", "vm": "no-name"})
        running.post("/faults", {"kind": "body", "route": "scheduledevents", "body": INCOMPLETE, "vm": "incomplete"})
        yield running


@pytest.fixture(scope="module")
def results(azure: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("edge-cases")
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    return run_modules(Hosts(folder, {"vm1": {}}), folder, dict(runs_of(azure.endpoints, folder)))["vm1"]


def approvals(azure: Simulator, vm: str) -> list[str]:
    found: list[str] = azure.get("/events/" + vm)["approved_by"]
    return found


@pytest.mark.parametrize("option", EMPTY)
def test_event_approve_with_an_empty_selection_approves_nothing(
    azure: Simulator, results: Results, option: str
) -> None:
    done = results[f"empty {option}"]
    assert done["failed"] is False and done["changed"] is False and done["approvals"] == []
    assert approvals(azure, "empty") == []


def test_event_approve_with_an_empty_policy_file_name_fails(azure: Simulator, results: Results) -> None:
    assert "cannot be read" in results["empty policy_file"]["msg"]
    assert approvals(azure, "empty") == []


def test_event_approve_with_other_vms_affected_warns(azure: Simulator, results: Results) -> None:
    result = results["event of two VMs"]
    assert result["approvals"][0]["outcome"] == "others_affected" and "release_others" in " ".join(result["warnings"])
    assert approvals(azure, "shared") == []


def test_incomplete_document_is_reported_as_incomplete(results: Results) -> None:
    info = results["incomplete info"]
    assert info["complete"] is False and info["events"] == [] and "EventId" in " ".join(info["warnings"])


def test_event_facts_without_the_library_requests_returns_facts(results: Results) -> None:
    facts = results["facts without requests"]["ansible_facts"]["azure_scheduled_events"]
    assert facts["available"] is False and "requests" in facts["reason"]
    assert "requests" in results["info without requests"]["msg"]


def test_event_info_without_need_of_the_name_ignores_a_failing_name_service(azure: Simulator, results: Results) -> None:
    info = results["no name"]
    assert len(info["events"]) == 1 and info["resource_name"] is None
    assert len(azure.get("/requests?vm=no-name")["requests"]) == 2
