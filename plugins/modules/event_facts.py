#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: event_facts
short_description: Gather the Azure Scheduled Events of a VM as facts
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Sets the fact C(azure_scheduled_events) from the Instance Metadata Service of the VM on which it runs.
  - Can be part of C(facts_modules), before every play, on hosts of any kind. It never fails a host, and takes at most
    O(timeout) seconds (3 seconds on a host without IMDS). If the events are unknown, the fact says so in
    RV(ansible_facts.azure_scheduled_events.available) and RV(ansible_facts.azure_scheduled_events.reason).
notes:
  - As part of C(facts_modules) the module does not request the events of a Windows host. The fact then says so, and
    names the remedy, a task with this module.
  - If C(facts_modules) names two modules, set the variable C(ansible_facts_parallel) to V(false) for all hosts.
    Otherwise Ansible runs the modules as asynchronous jobs with a time limit of 0, and fails a host on which one of
    them, also M(ansible.builtin.setup), takes longer than five seconds ("Timeout exceeded").
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._attributes.windows
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.facts
  - azure_imds.scheduled_events._attributes.reads
  - azure_imds.scheduled_events._attributes.actiongroup
options:
  timeout:
    description:
      - Seconds, or a text such as V(2m), for all requests to IMDS.
      - The first answer on a VM may take two minutes. With the default, the events are then unknown in the first run,
        and known in the next one.
    type: raw
    default: 5
seealso:
  - module: azure_imds.scheduled_events.event_info
    description: Returns the same events as the result of a task, which fails if IMDS cannot be read.
"""

EXAMPLES = r"""
- name: Gather the facts
  azure_imds.scheduled_events.event_facts:

# default(true) treats a host whose events are unknown as one with an event, default(false) as one
# without
- name: Skip hosts with a pending event
  ansible.builtin.meta: end_host
  when: ansible_facts.azure_scheduled_events.pending | default(true)

# To gather them before every play, in ansible.cfg:
#   [defaults]
#   facts_modules = ansible.builtin.setup, azure_imds.scheduled_events.event_facts
#   fact_caching = ansible.builtin.jsonfile
#   fact_caching_connection = .facts
#
# Because these are two fact modules, in inventory/group_vars/all.yml:
#   ansible_facts_parallel: false
#
# To group hosts by the cached facts, in inventory/maintenance.constructed.yml:
#   plugin: ansible.builtin.constructed
#   strict: false
#   groups:
#     maintenance_pending: azure_scheduled_events.pending
#     maintenance_unknown: not azure_scheduled_events.available
"""

RETURN = r"""
ansible_facts:
  description: Facts to add to C(ansible_facts).
  returned: always
  type: dict
  contains:
    azure_scheduled_events:
      description: The events, or why they are unknown.
      type: dict
      contains:
        available:
          description: Whether all events are known. If not, there may be events that are not listed.
          type: bool
          sample: true
        reason:
          description: Why events are unknown. Empty if RV(ansible_facts.azure_scheduled_events.available) is true.
          type: str
          sample: ''
        resource_name:
          description: Name of this VM as Azure knows it, or null if unknown.
          type: str
          sample: vm1
        incarnation:
          description: Incarnation number of the document, or null if unknown.
          type: int
          sample: 2
        events:
          description:
            - The selected events, in the form that M(azure_imds.scheduled_events.event_info) documents.
            - An empty list means "unknown" if RV(ansible_facts.azure_scheduled_events.available) is false.
          type: list
          elements: dict
          sample:
            - event_id: 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11
              event_type: Reboot
              status: Scheduled
              resources: [vm1, vm2]
              resource_type: VirtualMachine
              not_before: '2026-11-21T10:15:00Z'
              description: Host server is undergoing maintenance.
              source: Platform
              duration_seconds: 9
        pending:
          description:
            - Whether there are selected events, scheduled or started.
            - Missing if no event is known and RV(ansible_facts.azure_scheduled_events.available) is false. Both
              C(pending) and C(not pending) then fail on such a host, and P(ansible.builtin.constructed#inventory)
              without C(strict) puts it into no group. Add C(default(true)) or C(default(false)) to treat it as a host
              with or without events.
          returned: when events are known, or RV(ansible_facts.azure_scheduled_events.available) is true
          type: bool
          sample: true
"""

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import run_task
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.facts import EVENT_FACTS


def main() -> None:
    """Run the module."""
    run_task(EVENT_FACTS)


if __name__ == "__main__":
    main()
