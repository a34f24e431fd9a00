# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_report
short_description: Report the result of a maintenance run for each host and event
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role), whose variables it reads.
options:
  _input:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of the hosts.
    type: dict
    required: true
positional: hostvars
"""

EXAMPLES = r"""
- name: Show the report
  ansible.builtin.debug:
    msg: "{{ (ansible_play_hosts_all | azure_imds.scheduled_events.maintenance_report(hostvars)).table }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(rows) is a list of dictionaries, one for each host and event, as the README of the role describes them.
    - C(table) is the same report as a list of lines.
    - C(problems) has the reason for each host whose maintenance is not complete.
  type: dict
"""

import typing as t

from ..plugin_utils._maintenance.approval_attempts import last_results
from ..plugin_utils._maintenance.coordination_report import coordination_problems, coordination_rows
from ..plugin_utils._maintenance.hosts import hosts_of
from ..plugin_utils._maintenance.report import compose_report, table_of


def maintenance_report(hosts: t.Sequence[str], hostvars: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the report as rows, as a table, and the problems by host."""
    state = next(
        (
            hostvars[host]["maintenance__coordination"]
            for host in hosts
            if hostvars[host].get("maintenance__coordination")
        ),
        None,
    )
    if state is not None:
        rows = coordination_rows(state)
        return {"rows": rows, "table": table_of(rows), "problems": coordination_problems(state)}
    known = hosts_of(hosts, hostvars)
    rows = compose_report(
        known, last_results(filter(None, (hostvars[host].get("maintenance__decided") for host in hosts)))
    )
    return {
        "rows": rows,
        "table": table_of(rows),
        "problems": {host.name: host.problem() for host in known if host.problem()},
    }


class FilterModule:
    """The filter plugin maintenance_report."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"maintenance_report": maintenance_report}
