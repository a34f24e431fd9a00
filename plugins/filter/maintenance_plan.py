# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_plan
short_description: Plan for which events the hosts of a maintenance run prepare
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role), whose variables it reads. Its README describes the
    limits.
  - The hosts of one event prepare together. An event that does not fit into the limits waits for a later run, unless it
    starts soon.
options:
  _input:
    description: Names of all hosts of the play.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of the hosts.
    type: dict
    required: true
  groups:
    description: The hosts of each group of the inventory.
    type: dict
    required: true
  limits:
    description:
      - The values of C(at_most), C(group), C(one_fault_domain), C(deadline) and C(yield). The options of
        the role end with these names.
    type: dict
    default: {}
positional: hostvars, groups, limits
"""

EXAMPLES = r"""
- name: Plan the maintenance
  ansible.builtin.set_fact:
    plan: "{{ ansible_play_hosts_all | azure_imds.scheduled_events.maintenance_plan(hostvars, groups, limits) }}"
  run_once: true
  vars:
    limits: {at_most: 25%}
"""

RETURN = r"""
_value:
  description:
    - C(events) is a list of dictionaries, one for each due event in the order of urgency, as the README of the role
      describes them.
    - C(hosts) has for each host its C(events) in this run, C(prepares_for), the keys of those for which it prepares,
      and C(ends_at), the time in ISO 8601 UTC by which its preparation has to end, or null.
    - C(yields_at) is the time at which the first waiting event no longer waits, or null.
    - C(table) is the plan as a list of lines.
  type: dict
"""

import time
import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._maintenance.hosts import hosts_of
from ..plugin_utils._maintenance.limits import parse_limits
from ..plugin_utils._maintenance.plan import MaintenancePlan, describe, table_of_plan


def maintenance_plan(
    hosts: t.Sequence[str],
    hostvars: t.Mapping[str, t.Any],
    groups: t.Mapping[str, t.Any],
    limits: t.Mapping[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """Return the plan of the run."""
    now = time.time()
    try:
        chosen = parse_limits(limits or {}, hosts, groups)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error
    known = hosts_of(hosts, hostvars)
    plan = MaintenancePlan(known, chosen, now)
    events = [dict(event, why=describe(event, chosen)) for event in plan.events]
    return {
        "events": events,
        "hosts": plan.hosts(),
        "yields_at": plan.yields_at,
        "table": table_of_plan(events),
    }


class FilterModule:
    """The filter plugin maintenance_plan."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"maintenance_plan": maintenance_plan}
