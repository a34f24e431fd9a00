# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules return the values that they document, with the shapes of the samples, also when they run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from support import simulator_process
from support.ansible_hosts import Hosts
from support.module_play import Run, constant_of, run_modules
from support.simulator_process import Simulator

TYPES = {"str": str, "int": int, "float": float, "bool": bool, "dict": dict, "list": list}
# the fixture of this file runs one play for all of its tests
pytestmark = pytest.mark.xdist_group("module_return_values")

# values that Ansible itself adds to every result
OF_ANSIBLE = {"changed", "failed", "msg", "warnings", "exception", "diff", "ansible_job_id"}
MODULES = ("event_info", "event_facts", "event_wait", "event_approve")


def documented(module: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(constant_of(module, "RETURN"))
    return found


def differences(described: dict[str, Any], real: dict[str, Any], where: str) -> Iterator[str]:
    """Yield differences between descriptions of values and the values."""
    for name in real:
        if name not in described and name not in OF_ANSIBLE:
            yield f"{where}.{name} is returned but not documented"
    for name, about in described.items():
        if name not in real:
            yield f"{where}.{name} is documented but not returned"
            continue
        value = real[name]
        if value is None:
            if "null" not in str(about["description"]).lower():
                yield f"{where}.{name} is null, which its description does not mention"
            continue
        if not isinstance(value, TYPES[about["type"]]):
            yield f"{where}.{name} is {value!r}, not {about['type']}"
            continue
        if "sample" in about:
            yield from shape(about["sample"], value, f"{where}.{name}")
        items = value if about["type"] == "list" else [value]
        for item in items if "contains" in about else []:
            yield from differences(about["contains"], item, f"{where}.{name}")


def shape(sample: Any, value: Any, where: str) -> Iterator[str]:
    """Yield differences in structure between a sample and a value."""
    if isinstance(sample, dict) and isinstance(value, dict):
        if set(sample) != set(value):
            yield f"the sample of {where} has other members: {sorted(set(sample) ^ set(value))}"
        for name in set(sample) & set(value):
            yield from shape(sample[name], value[name], f"{where}.{name}")
    elif isinstance(sample, list) and isinstance(value, list):
        for item in value[:1]:
            yield from shape(sample[0], item, where)
    elif value is not None and type(sample) is not type(value):
        yield f"the sample of {where} is {sample!r} where {value!r} is returned"


FAULTS: dict[str, dict[str, Any]] = {
    # each module ends by itself, however long an answer takes: none repeats a request after a 403, and a
    # wait that has found the event returns the error before it
    "event_info": {"kind": "status", "status": 403},
    "event_wait": {"kind": "server-error", "requests": "1"},
    "event_approve": {"kind": "status", "status": 403},
}
OWN_OPTIONS: dict[str, dict[str, Any]] = {"event_approve": {"sources": ["User"]}}
# name of a run -> keywords of its task
RUNS: dict[str, dict[str, Any]] = {
    "in check mode": {"check_mode": True, "diff": True},
    "first": {"diff": True},
    "again": {"diff": True},
    "again in check mode": {"check_mode": True, "diff": True},
}


def vm_of(module: str, faulty: bool = False) -> str:
    return module.replace("_", "-") + ("-fault" if faulty else "")


@pytest.fixture(scope="module")
def azure() -> Iterator[Simulator]:
    """Azure with a VM and an event for each module, and for each module that returns errors."""
    vms = [*map(vm_of, MODULES), *(vm_of(module, faulty=True) for module in FAULTS)]
    scenario = {
        "groups": {vm: {"kind": "standalone", "vms": {vm: {}}} for vm in vms},
        "events": [{"name": vm, "type": "Reboot", "resources": [vm], "duration": 9, "source": "User"} for vm in vms],
        "knobs": {"rate_limit": 0, "start_delay": "1h"},
    }
    with simulator_process.start(scenario, args=["--clock", "manual"]) as running:
        yield running


@pytest.fixture(scope="module")
def results(azure: Simulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("return-values")
    receipts = {"event_approve": {"receipts": str(folder / "receipts")}}
    runs = {}
    for module in MODULES:
        options = {
            "endpoint": azure.endpoints[vm_of(module)],
            **OWN_OPTIONS.get(module, {}),
            **receipts.get(module, {}),
        }
        runs.update({f"{module} {name}": Run(module, options, keywords) for name, keywords in RUNS.items()})
    for module, fault in FAULTS.items():
        vm = vm_of(module, faulty=True)
        azure.post("/faults", {**fault, "vm": vm})
        options = {"endpoint": azure.endpoints[vm], "resource_name": vm, **OWN_OPTIONS.get(module, {})}
        runs[f"{module} with an error"] = Run(module, options)
    return run_modules(Hosts(folder, {"vm1": {}}), folder, runs)["vm1"]


@pytest.mark.parametrize("module", MODULES)
def test_result_of_success_is_as_documented(results: dict[str, Any], module: str) -> None:
    described = {name: about for name, about in documented(module).items() if name != "imds_error"}
    assert list(differences(described, results[f"{module} first"], module)) == []


@pytest.mark.parametrize("module", FAULTS)
def test_result_of_error_is_as_documented(results: dict[str, Any], module: str) -> None:
    real = results[f"{module} with an error"]
    assert real["imds_error"]["status"] == FAULTS[module].get("status", 500)
    about = documented("event_info")["imds_error"]["contains"]
    assert list(differences(about, real["imds_error"], module)) == []
    sample = documented(module)["imds_error"].get("sample", real["imds_error"])
    assert list(shape(sample, real["imds_error"], module)) == []


@pytest.mark.parametrize("module", ["event_info", "event_facts", "event_wait"])
def test_run_that_reads_changes_nothing_and_returns_the_same_again(
    azure: Simulator, results: dict[str, Any], module: str
) -> None:
    found = [results[f"{module} {name}"] for name in RUNS]
    assert not any(result["changed"] or result["failed"] for result in found)
    returned = [result.get("events", result.get("ansible_facts")) for result in found]
    assert returned[0] and returned == [returned[0]] * len(RUNS)
    assert azure.get("/events/" + vm_of(module))["approved_by"] == []


def test_event_wait_in_check_mode_does_not_wait(results: dict[str, Any]) -> None:
    assert [results[f"event_wait {name}"]["outcome"] for name in RUNS] == ["checked", "reached", "reached", "checked"]


def test_event_approve_approves_once_and_in_check_mode_nothing(azure: Simulator, results: dict[str, Any]) -> None:
    check, first, again, check_again = (results[f"event_approve {name}"] for name in RUNS)
    assert [result["changed"] for result in (check, first, again, check_again)] == [True, True, False, False]
    outcomes = [result["approvals"][0]["outcome"] for result in (check, first, again, check_again)]
    assert outcomes == ["approved", "approved", "already_approved", "already_approved"]
    (event_id,) = first["approved"]
    assert check["approved"] == [event_id] and again["approved"] == check_again["approved"] == []
    assert check["diff"] == first["diff"]
    assert first["diff"]["before"]["events"] == {event_id: "not approved"}
    assert first["diff"]["after"]["events"] == {event_id: "approved"}
    assert again["diff"]["before"] == again["diff"]["after"]
    vm = vm_of("event_approve")
    assert azure.get("/events/" + vm)["approved_by"] == [vm]
    posts = [request for request in azure.get(f"/requests?vm={vm}")["requests"] if request["method"] == "POST"]
    assert len(posts) == 1
