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
  - Asks the Instance Metadata Service of the VM on which it runs for the maintenance that Azure has scheduled.
  - The module fails where IMDS gives no good answer. An error page, an empty body or a time-out is never taken for
    "no events".
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.reads
  - azure_imds.scheduled_events._attributes.actiongroup
options:
  timeout:
    description:
      - Seconds that the module may spend on IMDS in all, with the repeats that a busy or updating service needs.
      - The default leaves room for the first answer of a VM, which may take two minutes. Later ones take milliseconds.
      - Where nothing listens the module fails after 3 seconds at the most.
    type: float
    default: 130
seealso:
  - module: azure_imds.scheduled_events.event_facts
  - module: azure_imds.scheduled_events.event_wait
  - module: azure_imds.scheduled_events.event_approve
"""

EXAMPLES = r"""
- name: Read the events that concern this VM
  azure_imds.scheduled_events.event_info:
  register: maintenance

- name: Say what is coming
  ansible.builtin.debug:
    msg: "{{ item.event_type }} not before {{ item.not_before }}: {{ item.description }}"
  loop: "{{ maintenance.events }}"
  loop_control:
    label: "{{ item.event_id }}"

- name: Read what Azure plans for any VM of this availability set, except freezes
  azure_imds.scheduled_events.event_info:
    affects: [any]
    types: [Reboot, Redeploy, Preempt, Terminate]
"""

RETURN = r"""
events:
  description: The selected events. The list is empty when IMDS said that there are none, see RV(complete).
  returned: success
  type: list
  elements: dict
  contains:
    event_id:
      description: Identity of the event, the same as long as it lasts.
      type: str
      sample: 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11
    event_type:
      description: V(Freeze), V(Reboot), V(Redeploy), V(Preempt), V(Terminate), or a type that is not known yet.
      type: str
      sample: Reboot
    status:
      description: V(Scheduled) or V(Started). An event that is over is no longer listed.
      type: str
      sample: Scheduled
    resources:
      description: Names of all VMs that the event hits, and that an approval releases.
      type: list
      elements: str
      sample: [vm1, vm2]
    resource_type:
      description: Kind of the resources.
      type: str
      sample: VirtualMachine
    not_before:
      description: UTC time before which the event does not start unless approved. Null once it has started.
      type: str
      sample: '2026-11-21T10:15:00Z'
    description:
      description: Text for people. Null below API version 2019-04-01.
      type: str
      sample: Host server is undergoing maintenance.
    source:
      description: V(Platform) or V(User). Null below API version 2019-08-01.
      type: str
      sample: Platform
    duration_seconds:
      description: Expected interruption. Null where unknown.
      type: int
      sample: 9
complete:
  description:
    - Whether every entry of the document could be read. If not, there may be events that are not listed, and the module
      warns.
  returned: success
  type: bool
  sample: true
incarnation:
  description: Number of the document. It changes with the events, but may skip numbers and start again. Null if missing.
  returned: success
  type: int
  sample: 2
resource_name:
  description: Name of this VM as Azure knows it, or null where IMDS did not tell it.
  returned: success
  type: str
  sample: vm1
imds_error:
  description: What went wrong with IMDS.
  returned: when IMDS gave no good answer
  type: dict
  contains:
    kind:
      description: V(ImdsUnreachable), V(ImdsRefused), V(ImdsUnreadable), V(OwnNameUnknown) or V(ImdsError).
      type: str
      sample: ImdsRefused
    message:
      description: What was asked, what came back and what to do.
      type: str
      sample: "IMDS at http://169.254.169.254 answered 500 to GET /metadata/scheduledevents?api-version=2020-07-01: Internal error"
    status:
      description: HTTP status, or null where there was no answer.
      type: int
      sample: 500
    retryable:
      description: Whether the same request may succeed later.
      type: bool
      sample: true
"""

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import (
    event_module,
    fail_json,
    open_session,
    parse_selection,
    warn_about,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError


def main() -> None:
    module = event_module(timeout=130)
    chosen = parse_selection(module)
    try:
        imds = open_session(module)
        document = imds.read_events(name_required=chosen.needs_own_name)
        events = chosen.pick(document, imds.resource_name)
    except ImdsError as error:
        fail_json(module, error)
    warn_about(module, document)
    module.exit_json(
        changed=False,
        events=[event.as_dict() for event in events],
        complete=document.complete,
        incarnation=document.incarnation,
        resource_name=imds.resource_name,
    )


if __name__ == "__main__":
    main()
