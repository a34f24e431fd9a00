# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_approvals
short_description: Decide which events the hosts of a maintenance run may approve
version_added: 0.2.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role), whose variables it reads.
  - An event may be approved if each VM in its Resources is one of the hosts and has prepared without a failure.
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
- name: Decide which events to approve
  ansible.builtin.set_fact:
    decisions: "{{ ansible_play_batch | azure_imds.scheduled_events.maintenance_approvals(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - One dictionary for each event. C(event_id) and C(event_type) are those of the event. C(resources) are the VMs that
      any of the hosts lists for it. C(by) is the host that approves it, C(approve) is whether it may, C(why_not) is the
      reason if it may not, and C(code) is a word for this reason.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.approvals import decide_approvals
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import hosts_of


def maintenance_approvals(hosts: t.Sequence[str], hostvars: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return the decision about each event of the hosts."""
    return decide_approvals(hosts_of(hosts, hostvars))


class FilterModule:
    """The filter plugin maintenance_approvals."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"maintenance_approvals": maintenance_approvals}
