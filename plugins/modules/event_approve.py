#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: event_approve
short_description: Approve Azure Scheduled Events
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Approves events at the Instance Metadata Service of the VM on which it runs. Azure may then start them at once.
  - An approval cannot be revoked, and releases every VM that the event names. An event that affects other VMs than this
    one is only approved with O(release_others=true).
  - An approved event has not started yet. Azure may wait for other customers on the same hardware. Use
    M(azure_imds.scheduled_events.event_wait) to wait for the start and the end.
notes:
  - IMDS does not list which events have been approved. The module therefore writes a receipt for every approval in
    O(receipts), and returns C(changed=false) for an event that has one. If the receipt cannot be written, the module
    warns and approves the event again next time, which has no further effect.
  - Users do not share receipts. If root has approved an event, the module approves it again for another user.
  - The module never approves events that have started or whose status is unknown. It approves events of an unknown
    type, source or resource type only when O(event_ids) or O(types) selects them, and never by a policy.
  - Before an approval the module reads the events again, after a second, because one document may lack a VM that the
    approval would release. In check mode, and if there is nothing to approve, it reads them once.
  - The module does not know since when an event exists. For a policy, every event is therefore new (condition
    C(first_seen_age)).
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._attributes.windows
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.actiongroup
attributes:
  check_mode:
    support: full
    details: The module reads the events and sends no approval.
  diff_mode:
    support: full
options:
  timeout:
    description:
      - Seconds, or a text such as V(2m), for all requests to IMDS. Within them the module repeats approvals to which
        IMDS gave no clear answer. An approval takes at least one second; with less time the module sends none.
      - If IMDS refuses an approval with 400 and still lists the event unchanged, the module sends the approval once
        more, then it fails.
      - If nothing listens at the endpoint, the module fails within 3 seconds.
    type: raw
    default: 130
  policy:
    description:
      - Rules that decide which of the selected events are approved now, as the name of a preset or a dictionary with
        C(rules).
      - V(documented) approves those events that affect this VM and that Microsoft's sample approves, events from users
        and freezes under 9 seconds. V(observe) approves nothing.
      - At least one of O(policy), O(policy_file), O(event_ids), O(types), O(statuses) and O(sources) is required.
    type: raw
  policy_file:
    description:
      - Path of a YAML file with such rules on the target, which needs PyYAML to read it. Mutually exclusive with
        O(policy).
      - The controller fetches the file of a Windows host, without privilege escalation.
    type: path
  prepared:
    description: For the policy, the state of this VM's preparation.
    type: str
    choices: [none, running, ok, failed]
    default: none
  gates:
    description: For the policy, the state of each gate by name, V(true) for open. A missing gate is closed.
    type: dict
    default: {}
  release_others:
    description:
      - Whether to approve events that also affect other VMs. The approval releases these VMs too.
      - An event of which the second document lacks a VM of the first one is not approved.
    type: bool
    default: false
  receipts:
    description:
      - Directory on the target for the receipts of approvals. A receipt holds for the event ID and its C(NotBefore),
        because Azure may reuse an ID for another occurrence. When the time has changed, the module approves the event
        again.
      - A receipt holds until the next reboot. A file of receipts that is damaged is replaced, with a warning.
      - The default is C(/run/azure-scheduled-events/approvals) for root, and
        C(~/.local/state/azure-scheduled-events/approvals) for other users.
      - The directory must belong to root or to the user who approves, and must not be writable by others. The module
        does not use any other directory.
      - The receipts of a Windows host are on the controller, in the directory C(hosts/NAME) below this one. NAME is the
        name of the host in the inventory, that of C(delegate_to) if the task has it. They hold until the next reboot of
        the controller.
    type: path
seealso:
  - module: azure_imds.scheduled_events.event_info
  - module: azure_imds.scheduled_events.event_wait
  - name: Policies
    description: Conditions and effects of the rules in O(policy) and O(policy_file).
    link: https://github.com/azure-imds/scheduled_events/blob/main/docs/policies.md
  - name: Scheduled events with Ansible
    description: Complete playbooks, and the hosts that each is for.
    link: https://github.com/azure-imds/scheduled_events/blob/main/docs/ansible.md
"""

EXAMPLES = r"""
- name: Approve events as Microsoft's sample does
  azure_imds.scheduled_events.event_approve:
    policy: documented

- name: Read the events
  azure_imds.scheduled_events.event_info:
  register: coming

- name: Prepare with a script beside the playbook
  ansible.builtin.script: drain.sh
  register: drained
  ignore_errors: true

- name: Approve restarts at night only, and only after this VM is ready
  azure_imds.scheduled_events.event_approve:
    prepared: "{{ 'ok' if drained is succeeded else 'failed' }}"
    policy:
      rules:
        - name: restarts at night
          when:
            type: [Reboot, Redeploy]
            only_me: true
            utc_hours: 22-5
          approve: after_prepare

- name: Fail on hosts that are not ready
  ansible.builtin.fail:
    msg: The preparation failed.
  when: drained is failed

- name: Approve the events that affect this VM only
  azure_imds.scheduled_events.event_approve:
    event_ids: "{{ coming.events | selectattr('resources', 'equalto', own) | map(attribute='event_id') }}"
  vars:
    own: ["{{ coming.resource_name }}"]

# This needs the linear strategy, Ansible's default: all hosts of ansible_play_batch have reached this
# task, and no failed host is in it. The first VM of the event, by name, approves. With run_once it could be a
# host that the event does not affect.
- name: Approve once for all VMs of an event if each of them is a ready host of this play
  azure_imds.scheduled_events.event_approve:
    event_ids: "{{ coming.events | map(attribute='event_id') }}"
    release_others: true
    policy:
      rules:
        - name: all of its VMs are ready
          when:
            is_leader: first
            resources:
              all: "{{ ansible_play_batch | map('extract', hostvars) | map(attribute='coming.resource_name') }}"
          approve: now
"""

RETURN = r"""
approvals:
  description: The outcome of each selected event, with its reason.
  returned: when IMDS could be read
  type: list
  elements: dict
  contains:
    event_id:
      description: Identity of the event.
      type: str
      sample: 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11
    outcome:
      description:
        - V(approved) if IMDS accepted the approval, or in check mode if the module would send it.
        - V(already_approved) if there is a receipt, V(started) if the event has started.
        - V(not_found) if IMDS lists no such event, V(not_selected) if other options exclude an event of O(event_ids),
          V(not_due) if the policy does not approve it now, or the event itself does not permit it.
        - V(others_affected) if it needs O(release_others), or if one of its VMs may have left it. The module fails if
          it is one of O(event_ids).
        - V(failed) if IMDS did not accept the approval. The module fails.
      type: str
      sample: approved
    reason:
      description: The reason for the outcome, as one sentence.
      type: str
      sample: selected
    event:
      description: The event in the form that M(azure_imds.scheduled_events.event_info) documents, or null.
      type: dict
      sample:
        event_id: 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11
        event_type: Reboot
        status: Scheduled
        resources: [vm1]
        resource_type: VirtualMachine
        not_before: '2026-11-21T10:15:00Z'
        description: Host server is undergoing maintenance.
        source: Platform
        duration_seconds: 9
approved:
  description: IDs of the events that the module approved, or would approve in check mode.
  returned: when IMDS could be read
  type: list
  elements: str
  sample: [2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11]
incarnation:
  description: Incarnation number of the document on which the decision rests, or null if missing.
  returned: when IMDS could be read
  type: int
  sample: 2
resource_name:
  description: Name of this VM as Azure knows it, or null if it was not needed or not found.
  returned: when IMDS could be read
  type: str
  sample: vm1
imds_error:
  description: The error of IMDS, in the form that M(azure_imds.scheduled_events.event_info) documents.
  returned: when the events could not be read
  type: dict
  sample:
    kind: ImdsRefused
    message: >-
      IMDS at http://169.254.169.254 answered 500 to GET
      /metadata/scheduledevents?api-version=2020-07-01: Internal error
    status: 500
    retryable: true
"""

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import run_task
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.approve import EVENT_APPROVE


def main() -> None:
    """Run the module."""
    run_task(EVENT_APPROVE)


if __name__ == "__main__":
    main()
