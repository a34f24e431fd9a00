# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules where something is odd: a question that found nothing, a misspelt word, a damaged document, a bare Python."""

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


def says(azure: Simulator, **changes: Any) -> None:
    """Let IMDS answer with one event in which something is changed."""
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
def test_a_question_that_found_nothing_approves_nothing(
    azure: Simulator, hosts: Hosts, tmp_path: Path, option: str
) -> None:
    done = hosts.module(
        "vm1", "event_approve", endpoint=azure.endpoints["vm1"], receipts=str(tmp_path / "r"), **{option: []}
    )
    assert done["changed"] is False and done["approvals"] == []
    assert azure.get("/events/one")["approved_by"] == []


def test_an_empty_name_of_a_policy_file_is_no_policy(azure: Simulator, hosts: Hosts) -> None:
    assert (
        "cannot be read" in hosts.module("vm1", "event_approve", endpoint=azure.endpoints["vm1"], policy_file="")["msg"]
    )
    assert azure.get("/events/one")["approved_by"] == []


@pytest.mark.parametrize("option, word, meant", [("statuses", "Schduled", "Scheduled"), ("sources", "Usr", "User")])
def test_a_misspelt_word_is_not_peace(azure: Simulator, hosts: Hosts, option: str, word: str, meant: str) -> None:
    result = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"], **{option: [word]})
    assert f"did you mean {meant}?" in result["msg"] and "events" not in result


def test_an_unknown_type_is_warned_of(azure: Simulator, hosts: Hosts) -> None:
    result = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"], types=["Rebot"])
    assert result["events"] == [] and "did you mean Reboot?" in hosts.warned


def test_a_policy_that_would_release_others_says_so(azure: Simulator, hosts: Hosts, tmp_path: Path) -> None:
    azure.post("/events/one/change", {"resources": ["vm1", "vm2"]})
    result = hosts.module(
        "vm1", "event_approve", endpoint=azure.endpoints["vm1"], policy="documented", receipts=str(tmp_path / "r")
    )
    assert result["approvals"][0]["outcome"] == "others_affected" and "release_others" in hosts.warned
    assert azure.get("/events/one")["approved_by"] == []


@pytest.mark.parametrize("resources", [[], None, {"a": 1}])
def test_an_event_whose_resources_cannot_be_read_is_not_over(azure: Simulator, hosts: Hosts, resources: Any) -> None:
    says(azure, Resources=resources)
    for ids in ({"event_ids": [EVENT_ID]}, {}):
        waited = hosts.module("vm1", "event_wait", endpoint=azure.endpoints["vm1"], state="absent", timeout=0.5, **ids)
        assert waited["outcome"] == "timeout"


def test_an_incomplete_document_is_told_as_such(azure: Simulator, hosts: Hosts) -> None:
    says(azure, EventId=None)
    info = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"])
    assert info["complete"] is False and info["events"] == [] and "EventId" in hosts.warned
    facts = hosts.module("vm1", "event_facts", endpoint=azure.endpoints["vm1"])["ansible_facts"][
        "azure_scheduled_events"
    ]
    assert facts["available"] is False and "could not be read" in facts["reason"]


def test_half_a_character_costs_nobody_the_result(azure: Simulator, hosts: Hosts, tmp_path: Path) -> None:
    says(azure, Description="half \ud800")
    info = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"])
    assert info["events"][0]["description"] == "half \\ud800"
    done = hosts.module(
        "vm1", "event_approve", endpoint=azure.endpoints["vm1"], types=["Reboot"], receipts=str(tmp_path / "r")
    )
    assert done["approved"] == [EVENT_ID]


def test_a_host_without_requests_gets_facts_all_the_same(azure: Simulator, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    hosts = Hosts(tmp_path, {"vm1": {"ansible_python_interpreter": str(tmp_path / "bare" / "bin" / "python")}})
    facts = hosts.module("vm1", "event_facts", endpoint=azure.endpoints["vm1"])["ansible_facts"][
        "azure_scheduled_events"
    ]
    assert facts["available"] is False and "requests" in facts["reason"]
    assert "requests" in hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"])["msg"]


def test_a_sick_name_service_delays_nobody_who_does_not_need_the_name(azure: Simulator, hosts: Hosts) -> None:
    azure.post("/faults", {"kind": "server-error", "route": "instance"})
    asked = len(azure.get("/requests")["requests"])
    info = hosts.module("vm1", "event_info", endpoint=azure.endpoints["vm1"], affects=["any"])
    assert len(info["events"]) == 1 and info["resource_name"] is None
    assert len(azure.get("/requests")["requests"]) - asked == 2
