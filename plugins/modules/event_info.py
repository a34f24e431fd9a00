#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: event_info
short_description: Read the Azure Scheduled Events of a VM
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Reads the maintenance that Azure has scheduled from the Instance Metadata Service of the VM on which it runs.
  - The module fails if IMDS gives no good answer. An error page, an empty body or a timeout never counts as
    "no events".
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._attributes.windows
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.reads
  - azure_imds.scheduled_events._attributes.actiongroup
options:
  timeout:
    description:
      - Seconds, or a text such as V(2m), for all requests to IMDS, with the repeats that a busy or updating service
        needs.
      - The default is long enough for the first answer on a VM, which may take two minutes. Later ones take
        milliseconds.
      - If nothing listens at the endpoint, the module fails within 3 seconds.
    type: raw
    default: 130
seealso:
  - module: azure_imds.scheduled_events.event_facts
  - module: azure_imds.scheduled_events.event_wait
  - module: azure_imds.scheduled_events.event_approve
"""

EXAMPLES = r"""
- name: Read the events that affect this VM
  azure_imds.scheduled_events.event_info:
  register: maintenance

- name: Show the events
  ansible.builtin.debug:
    msg: "{{ item.event_type }} not before {{ item.not_before }}: {{ item.description }}"
  loop: "{{ maintenance.events }}"
  loop_control:
    label: "{{ item.event_id }}"

- name: Read the events of all VMs of this availability set, except freezes
  azure_imds.scheduled_events.event_info:
    affects: [any]
    types: [Reboot, Redeploy, Preempt, Terminate]
"""

RETURN = r"""
events:
  description: The selected events. An empty list means that there are none, if RV(complete) is true.
  returned: success
  type: list
  elements: dict
  contains:
    event_id:
      description: ID of the event, the same until its end.
      type: str
      sample: 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11
    event_type:
      description: Such as V(Freeze) or V(Reboot), in the spelling of Azure; also a type that is unknown yet.
      type: str
      sample: Reboot
    status:
      description: V(Scheduled) or V(Started). An event that is over is no longer listed.
      type: str
      sample: Scheduled
    resources:
      description: Names of all VMs that the event affects and an approval releases.
      type: list
      elements: str
      sample: [vm1, vm2]
    resource_type:
      description: Kind of the resources.
      type: str
      sample: VirtualMachine
    not_before:
      description: UTC time before which the event starts only if approved. Null once it has started.
      type: str
      sample: '2026-11-21T10:15:00Z'
    description:
      description: Free text. Null below API version 2019-04-01.
      type: str
      sample: Host server is undergoing maintenance.
    source:
      description: V(Platform) or V(User). Null below API version 2019-08-01.
      type: str
      sample: Platform
    duration_seconds:
      description: Expected interruption in seconds, or null if unknown.
      type: int
      sample: 9
api_version:
  description: Version of the API with which the events were read; of a list, the one that IMDS answered.
  returned: success
  type: str
  sample: '2020-07-01'
complete:
  description:
    - Whether every entry of the document could be read. If not, there may be events that are not listed, and the module
      warns.
  returned: success
  type: bool
  sample: true
incarnation:
  description:
    - Incarnation number of the document. It changes with the events, but may skip numbers and start again. Null if
      missing.
  returned: success
  type: int
  sample: 2
resource_name:
  description: Name of this VM as Azure knows it, or null if IMDS did not give it.
  returned: success
  type: str
  sample: vm1
imds_error:
  description: The error of IMDS.
  returned: when IMDS gave no good answer
  type: dict
  contains:
    kind:
      description: V(ImdsUnreachable), V(ImdsRefused), V(ImdsUnreadable), V(OwnNameUnknown) or V(ImdsError).
      type: str
      sample: ImdsRefused
    message:
      description: The request, the answer and the remedy.
      type: str
      sample: >-
        IMDS at http://169.254.169.254 answered 500 to GET
        /metadata/scheduledevents?api-version=2020-07-01: Internal error
    status:
      description: HTTP status, or null if there was no answer.
      type: int
      sample: 500
    retryable:
      description: Whether the same request may succeed later.
      type: bool
      sample: true
"""

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import run_task
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.info import EVENT_INFO


def main() -> None:
    """Run the module."""
    run_task(EVENT_INFO)


if __name__ == "__main__":
    main()
