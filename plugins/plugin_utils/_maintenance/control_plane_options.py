# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validates the options of the role maintenance about Azure's control plane and about the events of the caller."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.announced import (
    read_announced,
    read_ended,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.arm_acknowledge import (
    endpoint_problem,
    resource_problem,
)

CONTROL_PLANE_OPTIONS = frozenset(
    ("approve_by", "arm_endpoint", "arm_resource_id", "arm_has_token", "events_from", "announced", "ended", "down")
)
ARM = "arm"
CALLER = "caller"
HOSTS = "hosts"
_WAYS = ("module", ARM)
_SOURCES = (HOSTS, CALLER)


def problems_of_control_plane(options: t.Mapping[str, t.Any]) -> list[str]:
    """Return what is wrong with the options, each as one sentence."""
    problems = []
    way = options.get("approve_by", _WAYS[0])
    if way not in _WAYS:
        problems.append(f"maintenance_approve_by: there is no way {way}; set it to module or arm")
    if way == ARM:
        problems += _problems_of_arm(options)
    source = options.get("events_from", _SOURCES[0])
    if source not in _SOURCES:
        problems.append(f"maintenance_events_from: there is no source {source}; set it to hosts or caller")
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
    resource_id = options.get("arm_resource_id")
    problem = resource_problem(str(resource_id)) if resource_id else ""
    if problem:
        problems.append(f"maintenance_arm_resource_id: {problem}")
    return problems
