# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validates the options of the role maintenance about Azure's control plane and about the events of the caller."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ...module_utils.azure_scheduled_events.options import did_you_mean
from .announced import read_announced, read_ended
from .arm_acknowledge import endpoint_problem, vm_of

CONTROL_PLANE_OPTIONS = frozenset(
    ("approve_by", "arm_endpoint", "arm_resource_id", "arm_has_token", "events_from", "announced", "ended", "down")
)
ARM = "arm"
CALLER = "caller"
HOSTS = "hosts"
_WAYS = ("module", ARM)
# the last one is the default of maintenance_arm_resource_id
_OPTIONS_OF_ARM = ("maintenance_arm_endpoint", "maintenance_arm_resource_id", "id")
_SOURCES = (HOSTS, CALLER)


def problems_of_control_plane(options: t.Mapping[str, t.Any]) -> list[str]:
    """Return what is wrong with the options, each as one sentence."""
    problems = []
    way, source = options.get("approve_by", _WAYS[0]), options.get("events_from", _SOURCES[0])
    for name, value, known in (("approve_by", way, _WAYS), ("events_from", source, _SOURCES)):
        if value not in known:
            problems.append(f"maintenance_{name}: unknown value {value!r}{did_you_mean(value, known)}")
    if way == ARM:
        problems += _problems_of_arm(options)
    for read, name in ((read_announced, "announced"), (read_ended, "ended")):
        try:
            read(options.get(name, []))
        except ValueError as error:
            problems.append(str(error))
    if boolean(options.get("down", False), strict=False) and source != CALLER:
        problems.append("maintenance_down: a host that is down reads no events; set maintenance_events_from to caller")
    return problems


def _problems_of_arm(options: t.Mapping[str, t.Any]) -> list[str]:
    problems = []
    if not boolean(options.get("arm_has_token", False), strict=False):
        problems.append(
            "maintenance_arm_token: the token is missing; set it, for example to the output of"
            " az account get-access-token --query accessToken --output tsv"
        )
    problem = endpoint_problem(str(options.get("arm_endpoint")))
    if problem:
        problems.append(f"maintenance_arm_endpoint: {problem}")
    try:
        arm_options(options)
    except ValueError as error:
        problems.append(f"maintenance_arm_resource_id: {error}")
    return problems


def arm_options(options: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Return ``endpoint``, ``resource_id`` and ``vm``, the VM of the resource ID; raise ValueError without a VM."""
    resource_id = str(options.get("arm_resource_id") or "")
    if not resource_id:
        raise ValueError(
            "the resource ID of the VM is missing; set it in the inventory for each host, or use the inventory plugin"
            " azure.azcollection.azure_rm, which sets id"
        )
    return {"endpoint": str(options.get("arm_endpoint")), "resource_id": resource_id, "vm": vm_of(resource_id)}


def problems_of_facts(way: str, facts: t.Mapping[str, t.Any]) -> list[str]:
    """Return a problem for each variable that a fact of the host sets although the host must not choose its value.

    Any result of a module may have facts. They take precedence over the inventory and the defaults of the role: a
    compromised host would get the token, or would be another VM. ``way`` says how events are approved.
    """
    return [
        f"{name}: a fact of the host sets this variable; examine the host, and clear the fact cache"
        for name in ("maintenance_approve_by", *(_OPTIONS_OF_ARM if way == ARM else ()))
        if name in facts
    ]
