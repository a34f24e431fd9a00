# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules in edge cases: empty selections, misspelt values, damaged documents, missing libraries."""

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
FORGED = "\nchanged: [vm1]\x1b[2J"
MISSPELT = {"types": ("Rebot", "Reboot"), "statuses": ("Schduled", "Scheduled"), "sources": ("Usr", "User")}
# VM -> members of its event that IMDS returns otherwise than the simulator would
DAMAGED: dict[str, dict[str, Any]] = {
    "no-resources": {"Resources": []},
    "null-resources": {"Resources": None},
    "object-as-resources": {"Resources": {"a": 1}},
    "no-event-id": {"EventId": None},
    "lone-surrogate": {"Description": "half \ud800"},
    "forged-line": {"DurationInSeconds": f"1{FORGED}"},
}
UNREADABLE_RESOURCES = [vm for vm in DAMAGED if vm.endswith("resources")]
VMS = (
    *(f"empty-{option.replace('_', '-')}" for option in EMPTY),
    *("no-policy-file", "misspelt", "shared", "other", "no-library", "no-name", "forged-error", *DAMAGED),
)

Results = dict[str, dict[str, Any]]


def event_id(vm: str) -> str:
    return f"5C1D6E3A-84F2-4B7E-9A10-{VMS.index(vm):012X}"


def runs_of(endpoints: dict[str, str], folder: Path) -> Iterator[tuple[str, Run]]:
    def run(vm: str, module: str, **options: Any) -> Run:
        more = {"receipts": str(folder / "receipts")} if module == "event_approve" else {}
        return Run(module, {"endpoint": endpoints[vm], **more, **options})

    for option in EMPTY:
        yield f"empty {option}", run(f"empty-{option.replace('_', '-')}", "event_approve", **{option: []})
    yield "empty policy_file", run("no-policy-file", "event_approve", policy_file="")
    for option, (value, _meant) in MISSPELT.items():
        yield f"misspelt {option}", run("misspelt", "event_info", **{option: [value]})
    yield "unknown type", run("misspelt", "event_info", types=["Hibernate"])
    yield "event of two VMs", run("shared", "event_approve", policy="documented")
    for vm in UNREADABLE_RESOURCES:
        yield f"{vm}, one event", run(vm, "event_wait", state="absent", timeout=0.5, event_ids=[event_id(vm)])
        yield f"{vm}, any event", run(vm, "event_wait", state="absent", timeout=0.5)
    yield "incomplete info", run("no-event-id", "event_info")
    yield "incomplete facts", run("no-event-id", "event_facts")
    yield "lone surrogate", run("lone-surrogate", "event_info")
    yield "approval with a lone surrogate", run("lone-surrogate", "event_approve", types=["Reboot"])
    bare = {"vars": {"ansible_python_interpreter": str(folder / "bare" / "bin" / "python")}}
    yield "facts without requests", run("no-library", "event_facts")._replace(keywords=bare)
    yield "info without requests", run("no-library", "event_info")._replace(keywords=bare)
    yield "forged error", run("forged-error", "event_info")
    yield "forged warning", run("forged-line", "event_info")
    yield "no name", run("no-name", "event_info", affects=["any"])


@pytest.fixture(scope="module")
def azure() -> Iterator[Simulator]:
    """Azure with an event for each VM; those of some VMs are damaged."""
    groups: dict[str, Any] = {
        vm: {"kind": "standalone", "vms": {vm: {}}} for vm in VMS if vm not in ("shared", "other")
    }
    groups["pair"] = {"kind": "availability_set", "vms": {"shared": {}, "other": {}}}
    events = [
        {"name": vm, "id": event_id(vm), "type": "Reboot", "resources": [vm], "source": "User"}
        for vm in VMS
        if vm != "other"
    ]
    scenario = {"groups": groups, "events": events, "knobs": {"rate_limit": 0}}
    with simulator_process.start(scenario, args=["--clock", "manual"]) as running:
        running.post("/events/shared/change", {"resources": ["shared", "other"]})
        running.post("/faults", {"kind": "server-error", "route": "instance", "vm": "no-name"})
        refusal = {"kind": "status", "status": 400, "body": json.dumps({"error": f"Bad{FORGED}"})}
        running.post("/faults", {**refusal, "vm": "forged-error"})
        for vm, members in DAMAGED.items():
            answer = {"kind": "body", "route": "scheduledevents", "method": "GET", "body": document(vm, members)}
            running.post("/faults", {**answer, "vm": vm})
        yield running


def document(vm: str, members: dict[str, Any]) -> str:
    """Return a document with the event of this VM, with these members changed."""
    entry = {
        "EventId": event_id(vm),
        "EventStatus": "Scheduled",
        "EventType": "Reboot",
        "ResourceType": "VirtualMachine",
        "Resources": [vm],
        "NotBefore": "Fri, 31 Dec 2100 12:00:00 GMT",
        "Description": "",
        "EventSource": "User",
        "DurationInSeconds": -1,
    }
    return json.dumps({"DocumentIncarnation": 3, "Events": [{**entry, **members}]})


@pytest.fixture(scope="module")
def results(azure: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("edge-cases")
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    return run_modules(Hosts(folder, {"vm1": {}}), folder, dict(runs_of(azure.endpoints, folder)))["vm1"]


def approvals(azure: Simulator, vm: str) -> list[str]:
    found: list[str] = azure.get("/events/" + vm)["approved_by"]
    return found


def warned(result: dict[str, Any]) -> str:
    return " ".join(result["warnings"])


@pytest.mark.parametrize("option", EMPTY)
def test_event_approve_with_an_empty_selection_approves_nothing(
    azure: Simulator, results: Results, option: str
) -> None:
    done = results[f"empty {option}"]
    assert done["failed"] is False and done["changed"] is False and done["approvals"] == []
    assert approvals(azure, f"empty-{option.replace('_', '-')}") == []


def test_event_approve_with_an_empty_policy_file_name_fails(azure: Simulator, results: Results) -> None:
    assert "cannot be read" in results["empty policy_file"]["msg"]
    assert approvals(azure, "no-policy-file") == []


@pytest.mark.parametrize("option", MISSPELT)
def test_event_info_with_a_misspelt_value_fails(results: Results, option: str) -> None:
    result, (_value, meant) = results[f"misspelt {option}"], MISSPELT[option]
    assert result["failed"] and f"did you mean {meant}?" in result["msg"] and "events" not in result


def test_event_info_with_an_unknown_type_warns(results: Results) -> None:
    result = results["unknown type"]
    assert result["events"] == [] and "event type 'Hibernate' is unknown" in warned(result)


def test_event_approve_with_other_vms_affected_warns(azure: Simulator, results: Results) -> None:
    result = results["event of two VMs"]
    assert result["approvals"][0]["outcome"] == "others_affected" and "release_others" in warned(result)
    assert approvals(azure, "shared") == []


@pytest.mark.parametrize("vm", UNREADABLE_RESOURCES)
def test_event_wait_with_unreadable_resources_does_not_report_the_end(results: Results, vm: str) -> None:
    assert [results[f"{vm}, {which} event"]["outcome"] for which in ("one", "any")] == ["timeout", "timeout"]


def test_incomplete_document_is_reported_as_incomplete(results: Results) -> None:
    info = results["incomplete info"]
    assert info["complete"] is False and info["events"] == [] and "EventId" in warned(info)
    facts = results["incomplete facts"]["ansible_facts"]["azure_scheduled_events"]
    assert facts["available"] is False and "could not be read" in facts["reason"]


def test_lone_surrogate_in_a_description_is_escaped(results: Results) -> None:
    assert results["lone surrogate"]["events"][0]["description"] == "half \\ud800"
    assert results["approval with a lone surrogate"]["approved"] == [event_id("lone-surrogate")]


def test_texts_of_imds_begin_no_line_and_steer_no_terminal(results: Results) -> None:
    assert "Bad?changed: [vm1]?[2J" in results["forged error"]["msg"]
    assert "1?changed: [vm1]?[2J" in warned(results["forged warning"])


def test_event_facts_without_the_library_requests_returns_facts(results: Results) -> None:
    facts = results["facts without requests"]["ansible_facts"]["azure_scheduled_events"]
    assert facts["available"] is False and "requests" in facts["reason"]
    assert "requests" in results["info without requests"]["msg"]


def test_event_info_without_need_of_the_name_ignores_a_failing_name_service(azure: Simulator, results: Results) -> None:
    info = results["no name"]
    assert len(info["events"]) == 1 and info["resource_name"] is None
    assert len(azure.get("/requests?vm=no-name")["requests"]) == 2
