# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules return the values that they document, with the shapes of the samples."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ansible_hosts import Hosts
from support.repository import REPOSITORY
from support.simulator_process import Simulator

TYPES = {"str": str, "int": int, "float": float, "bool": bool, "dict": dict, "list": list}
# values that Ansible itself adds to every result
OF_ANSIBLE = {"changed", "failed", "msg", "warnings", "exception", "diff", "ansible_job_id"}
MODULES = ("event_info", "event_facts", "event_wait", "event_approve")


def documented(module: str) -> dict[str, Any]:
    """Return the documented return values of a module."""
    tree = ast.parse((REPOSITORY / "plugins" / "modules" / (module + ".py")).read_text(encoding="utf-8"))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "RETURN":
            found: dict[str, Any] = yaml.safe_load(ast.literal_eval(statement.value))
            return found
    raise AssertionError(f"{module} documents no return values")


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


@pytest.fixture
def azure(simulate: Callable[..., Simulator]) -> Simulator:
    return simulate({"type": "Reboot", "resources": ["vm1"], "duration": 9, "source": "User"})


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path, {"vm1": {}})


@pytest.mark.parametrize("module", MODULES)
def test_result_of_success_is_as_documented(azure: Simulator, hosts: Hosts, tmp_path: Path, module: str) -> None:
    options = {"event_approve": {"sources": ["User"], "receipts": str(tmp_path)}}.get(module, {})
    real = hosts.module("vm1", module, endpoint=azure.endpoints["vm1"], **options)
    described = {name: about for name, about in documented(module).items() if name != "imds_error"}
    assert list(differences(described, real, module)) == []


# each module ends by itself, however long an answer takes: none repeats a request after a 403, and a
# wait that has found the event returns the error before it
@pytest.mark.parametrize(
    "module, fault",
    [
        ("event_info", {"kind": "status", "status": 403}),
        ("event_wait", {"kind": "server-error", "requests": "1"}),
        ("event_approve", {"kind": "status", "status": 403}),
    ],
)
def test_result_of_error_is_as_documented(azure: Simulator, hosts: Hosts, module: str, fault: dict[str, Any]) -> None:
    azure.post("/faults", fault)
    options = {"event_approve": {"sources": ["User"]}}.get(module, {})
    real = hosts.module("vm1", module, endpoint=azure.endpoints["vm1"], resource_name="vm1", **options)
    assert real["imds_error"]["status"] == fault.get("status", 500)
    about = documented("event_info")["imds_error"]["contains"]
    assert list(differences(about, real["imds_error"], module)) == []
    sample = documented(module)["imds_error"].get("sample", real["imds_error"])
    assert list(shape(sample, real["imds_error"], module)) == []
