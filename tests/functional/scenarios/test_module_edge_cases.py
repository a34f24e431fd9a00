# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules in edge cases: empty selections, misspelt values, damaged documents, missing libraries."""

from __future__ import annotations

import json
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.ansible_hosts import Hosts
from support.simulator_process import Simulator

EVENT_ID = "5C1D6E3A-84F2-4B7E-9A10-2F0C7B9D4E01"


@pytest.fixture
def azure(simulate: Callable[..., Simulator]) -> Simulator:
    return simulate({"name": "one", "id": EVENT_ID, "type": "Reboot", "resources": ["vm1"], "source": "User"})


@pytest.fixture
def hosts(azure: Simulator, tmp_path: Path) -> Hosts:
    return Hosts(tmp_path, {"vm1": {}})


def replace_event(azure: Simulator, **changes: Any) -> None:
    """Let IMDS return one event with these members changed."""
    entry = {
        "EventId": EVENT_ID,
        "EventStatus": "Scheduled",
        "EventType": "Reboot",
        "ResourceType": "VirtualMachine",
        "Resources": ["vm1"],
        "NotBefore": "Fri, 31 Dec 2100 12:00:00 GMT",
        "Description": "",
        "EventSource": "User",
        "DurationInSeconds": -1,
    }
    body = json.dumps({"DocumentIncarnation": 3, "Events": [{**entry, **changes}]})
    azure.post("/faults", {"kind": "body", "route": "scheduledevents", "method": "GET", "body": body})


@pytest.mark.parametrize("option", ["event_ids", "types", "statuses", "sources"])
def test_event_approve_with_an_empty_selection_approves_nothing(
    azure: Simulator, hosts: Hosts, tmp_path: Path, option: str
) -> None:
    done = hosts.module(
        "vm1", "event_approve", endpoint=azure.endpoints["vm1"], receipts=str(tmp_path / "r"), **{option: []}
    )
    assert done["changed"] is False and done["approvals"] == []
    assert azure.get("/events/one")["approved_by"] == []


def test_event_approve_with_an_empty_policy_file_name_fails(azure: Simulator, hosts: Hosts) -> None:
    assert (
        "cannot be read" in hosts.module("vm1", "event_approve", endpoint=azure.endpoints["vm1"], policy_file="")["msg"]
    )
    assert azure.get("/events/one")["approved_by"] == []


@pytest.mark.parametrize("option, value, meant", [("statuses", "Schduled", "Scheduled"), ("sources", "Usr", "User")])
def test_event_info_with_a_misspelt_value_fails(
    azure: Simulator, hosts: Hosts, option: str, value: str, meant: str
) -> None:
    result = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"], **{option: [value]})
    assert f"did you mean {meant}?" in result["msg"] and "events" not in result


def test_event_info_with_an_unknown_type_warns(azure: Simulator, hosts: Hosts) -> None:
    result = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"], types=["Rebot"])
    assert result["events"] == [] and "did you mean Reboot?" in hosts.warned


def test_event_approve_with_other_vms_affected_warns(azure: Simulator, hosts: Hosts, tmp_path: Path) -> None:
    azure.post("/events/one/change", {"resources": ["vm1", "vm2"]})
    result = hosts.module(
        "vm1", "event_approve", endpoint=azure.endpoints["vm1"], policy="documented", receipts=str(tmp_path / "r")
    )
    assert result["approvals"][0]["outcome"] == "others_affected" and "release_others" in hosts.warned
    assert azure.get("/events/one")["approved_by"] == []


@pytest.mark.parametrize("resources", [[], None, {"a": 1}])
def test_event_wait_with_unreadable_resources_does_not_report_the_end(
    azure: Simulator, hosts: Hosts, resources: Any
) -> None:
    replace_event(azure, Resources=resources)
    for ids in ({"event_ids": [EVENT_ID]}, {}):
        waited = hosts.module("vm1", "event_wait", endpoint=azure.endpoints["vm1"], state="absent", timeout=0.5, **ids)
        assert waited["outcome"] == "timeout"


def test_incomplete_document_is_reported_as_incomplete(azure: Simulator, hosts: Hosts) -> None:
    replace_event(azure, EventId=None)
    info = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"])
    assert info["complete"] is False and info["events"] == [] and "EventId" in hosts.warned
    facts = hosts.module("vm1", "event_facts", endpoint=azure.endpoints["vm1"])["ansible_facts"][
        "azure_scheduled_events"
    ]
    assert facts["available"] is False and "could not be read" in facts["reason"]


def test_lone_surrogate_in_a_description_is_escaped(azure: Simulator, hosts: Hosts, tmp_path: Path) -> None:
    replace_event(azure, Description="half \ud800")
    info = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"])
    assert info["events"][0]["description"] == "half \\ud800"
    done = hosts.module(
        "vm1", "event_approve", endpoint=azure.endpoints["vm1"], types=["Reboot"], receipts=str(tmp_path / "r")
    )
    assert done["approved"] == [EVENT_ID]


def test_event_facts_without_the_library_requests_returns_facts(azure: Simulator, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    hosts = Hosts(tmp_path, {"vm1": {"ansible_python_interpreter": str(tmp_path / "bare" / "bin" / "python")}})
    facts = hosts.module("vm1", "event_facts", endpoint=azure.endpoints["vm1"])["ansible_facts"][
        "azure_scheduled_events"
    ]
    assert facts["available"] is False and "requests" in facts["reason"]
    assert "requests" in hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"])["msg"]


def test_event_info_without_need_of_the_name_ignores_a_failing_name_service(azure: Simulator, hosts: Hosts) -> None:
    azure.post("/faults", {"kind": "server-error", "route": "instance"})
    before = len(azure.get("/requests")["requests"])
    info = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"], affects=["any"])
    assert len(info["events"]) == 1 and info["resource_name"] is None
    assert len(azure.get("/requests")["requests"]) - before == 2
