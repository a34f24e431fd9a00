# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Instance metadata of a VM: defaults, with overrides of the scenario.

See docs/reference/scheduled-events.md 3.3.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from ..api_versions import COMPUTE_FIELD_SINCE
from ..scenario.groups import Group, Vm

_SUBSCRIPTION = "00000000-0000-4000-8000-00005eed0001"
_RESOURCE_GROUP = "rg-simulated"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


def instance_document(group: Group, vm: Vm) -> dict[str, Any]:
    """Return the document of ``/metadata/instance`` for ``vm``.

    All primitive values are strings.
    """
    document = {"compute": _compute(group, vm), "network": _network(group, vm)}
    merged = _merge(_merge(document, group.instance), vm.instance)
    result: dict[str, Any] = _strings(merged)
    return result


def compute_document(group: Group, vm: Vm) -> dict[str, str]:
    """Return the member ``compute`` of ``/metadata/instance`` for ``vm``."""
    overrides = (each.get("compute", {}) for each in (group.instance, vm.instance))
    merged = _compute(group, vm)
    for override in overrides:
        merged = _merge(merged, override)
    result: dict[str, str] = _strings(merged)
    return result


def fields_of_version(document: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return ``document`` with the members of ``compute`` that ``version`` has."""
    compute = {
        name: value
        for name, value in document.get("compute", {}).items()
        if COMPUTE_FIELD_SINCE.get(name, "") <= version
    }
    return {**document, "compute": compute}


def _compute(group: Group, vm: Vm) -> dict[str, Any]:
    name = vm.resource_name
    in_scale_set = group.kind == "scale_set"
    number = name.rpartition("_")[2]
    uniform = in_scale_set and group.orchestration == "uniform"
    base = f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/{_RESOURCE_GROUP}/providers/Microsoft.Compute/"
    compute: dict[str, Any] = {
        "azEnvironment": "AzurePublicCloud",
        "evictionPolicy": "",
        "location": "westeurope",
        "name": name,
        "offer": "",
        "osProfile": {
            "adminUsername": "azureuser",
            "computerName": _hostname(group, number) if uniform else name,
            "disablePasswordAuthentication": "true",
        },
        "osType": "Linux",
        "placementGroupId": _guid("placement", group.name) if uniform else "",
        "platformFaultDomain": vm.fault_domain,
        "platformUpdateDomain": vm.update_domain,
        "priority": "Regular",
        "provider": "Microsoft.Compute",
        "publisher": "",
        "resourceGroupName": _RESOURCE_GROUP,
        "resourceId": base
        + (f"virtualMachineScaleSets/{group.name}/virtualMachines/{number}" if uniform else f"virtualMachines/{name}"),
        "sku": "",
        "subscriptionId": _SUBSCRIPTION,
        "tags": "",
        "tagsList": [],
        "version": "",
        "vmId": _guid("vm", vm.name),
        "vmScaleSetName": group.name if in_scale_set else "",
        "vmSize": "Standard_D2s_v5",
        "zone": vm.zone,
    }
    if in_scale_set and not uniform:
        compute["virtualMachineScaleSet"] = {"id": base + f"virtualMachineScaleSets/{group.name}"}
    return compute


def _network(group: Group, vm: Vm) -> dict[str, Any]:
    index = group.vms.index(vm)
    address = vm.source or f"10.0.{index // 250}.{4 + index % 250}"
    return {
        "interface": [
            {
                "ipv4": {
                    "ipAddress": [{"privateIpAddress": address, "publicIpAddress": ""}],
                    "subnet": [{"address": address.rpartition(".")[0] + ".0", "prefix": "24"}],
                },
                "ipv6": {"ipAddress": []},
                "macAddress": f"000D3A{index:06X}",
            }
        ]
    }


def _hostname(group: Group, number: str) -> str:
    """Return the host name of a uniform instance: prefix and six base-36 digits.

    See reference 3.2.1.
    """
    value, digits = int(number) if number.isdigit() else 0, ""
    while value:
        value, rest = divmod(value, 36)
        digits = _BASE36[rest] + digits
    return group.name + digits.rjust(6, "0")


def _guid(kind: str, name: str) -> str:
    """Return an id that is the same at every start."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"imds-simulator/{kind}/{name}"))


def _merge(base: Any, override: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(override, Mapping):
        return override
    return {**base, **{key: _merge(base.get(key), value) for key, value in override.items()}}


def _strings(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _strings(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strings(each) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
