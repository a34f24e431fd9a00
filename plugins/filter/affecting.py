# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: affecting
short_description: Select the events that affect a VM
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Returns the events whose Resources name one of the VMs, in their order.
  - Whole names are compared. Letter case does not count, nor an underscore before a name in Resources.
options:
  _input:
    description: Events in the form of M(azure_imds.scheduled_events.event_info).
    type: list
    elements: dict
    required: true
  names:
    description:
      - The name of a VM in Azure, or a list of names. The name of the inventory host may be another one.
      - An empty list selects no event.
    type: list
    elements: str
    required: true
positional: names
seealso:
  - module: azure_imds.scheduled_events.event_info
  - plugin: azure_imds.scheduled_events.impactful
    plugin_type: test
"""

EXAMPLES = r"""
- name: Read the events of the whole availability set
  azure_imds.scheduled_events.event_info:
    affects: [any]
  register: maintenance

- name: Show the events of the VM vm2
  ansible.builtin.debug:
    msg: "{{ maintenance.events | azure_imds.scheduled_events.affecting('vm2') }}"
"""

RETURN = r"""
_value:
  description: The events that affect at least one of the VMs.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils.azure_scheduled_events.identity import affects
from ..plugin_utils._event_values import event_of


def affecting(events: t.Any, names: t.Any) -> list[t.Any]:
    """Return the events that affect at least one of the VMs."""
    wanted = [names] if isinstance(names, str) else names
    if not isinstance(wanted, (list, tuple)) or not all(isinstance(name, str) and name for name in wanted):
        raise AnsibleFilterError("affecting: names is not the name of a VM or a list of names; give resource_name")
    if not isinstance(events, (list, tuple)):
        raise AnsibleFilterError("affecting: the value is not a list of events; give the events of event_info")
    read = [(value, event_of(value, "affecting")) for value in events]
    return [value for value, event in read if any(affects(event, name) for name in wanted)]


class FilterModule:
    """The filter plugin affecting."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"affecting": affecting}
