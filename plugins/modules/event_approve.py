#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: event_approve
short_description: Approve Azure Scheduled Events, so that they start early
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Tells the Instance Metadata Service of the VM on which it runs that scheduled events may start.
  - An approval cannot be taken back, and releases every VM that the event names. An event that hits other VMs than this
    one is only approved with O(release_others=true).
  - Approved is not started. Azure may wait for other customers on the same hardware. Use
    M(azure_imds.scheduled_events.event_wait) to see the start and the end.
notes:
  - IMDS does not show which events have been approved. So the module leaves a receipt for every approval in O(receipts)
    and reports C(changed=false) for an event that has one. Where receipts cannot be written the module warns, and
    approves again next time, which does no harm.
  - Users do not see the receipts of each other. An event that root has approved is approved once more by another user.
  - Events that have started, or whose status is not known, are never approved. Events of an unknown type are approved only
    when their id or type is asked for.
  - Looks at the events once. So a policy that asks for the age of an event always sees a new one.
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.actiongroup
attributes:
  check_mode:
    support: full
    details: The events are read, and nothing is sent.
  diff_mode:
    support: full
options:
  timeout:
    description:
      - Seconds that the module may spend on IMDS in all. Approvals with a doubtful answer are repeated within them.
      - An approval that IMDS refuses with 400 is sent once more when the event is still listed as it was, then the module fails.
      - Where nothing listens the module fails after 3 seconds at the most.
    type: float
    default: 130
  policy:
    description:
      - Rules that decide which of the selected events are approved now. Either the name of a preset or a dictionary with
        C(rules).
      - V(documented) approves what Microsoft's own sample approves, events from users and freezes under 9 seconds, as far
        as they concern this VM. V(observe) approves nothing.
      - At least one of O(policy), O(policy_file), O(event_ids), O(types), O(statuses) and O(sources) is needed.
    type: raw
  policy_file:
    description: A YAML file on the target with such rules. Reading it needs PyYAML there.
    type: path
  prepared:
    description: For the policy, how far the preparation of this VM is.
    type: str
    choices: [none, running, ok, failed]
    default: none
  gates:
    description: For the policy, results of checks of your own by name. One that a rule asks for and is missing is closed.
    type: dict
    default: {}
  release_others:
    description: Whether to approve events that also hit other VMs than this one, which are released with it.
    type: bool
    default: false
  receipts:
    description:
      - Directory on the target for the receipts of approvals. A receipt counts for the event ID at its C(NotBefore), since
        Azure may use an ID again for another occurrence. When the time has changed the event is approved again.
      - The default is C(/run/azure-scheduled-events/approvals) for root, and
        C(~/.local/state/azure-scheduled-events/approvals) for other users.
      - The directory has to belong to root or to the user who approves, and must not be writable by others. Receipts in
        any other directory do not count, and none is written there.
    type: path
seealso:
  - module: azure_imds.scheduled_events.event_info
  - module: azure_imds.scheduled_events.event_wait
  - name: Policies
    description: Conditions and actions of the rules in O(policy) and O(policy_file).
    link: https://github.com/azure-imds/scheduled_events/blob/main/docs/policies.md
  - name: Scheduled events with Ansible
    description: Whole playbooks, and which of them suits which hosts.
    link: https://github.com/azure-imds/scheduled_events/blob/main/docs/ansible.md
"""

EXAMPLES = r"""
- name: Approve what Microsoft's documentation suggests
  azure_imds.scheduled_events.event_approve:
    policy: documented

- name: See what is coming
  azure_imds.scheduled_events.event_info:
  register: coming

- name: Prepare, with a script that lies beside the playbook
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
          do:
            - approve: after_prepare

- name: End hosts that are not ready, so that nothing is approved for them
  ansible.builtin.fail:
    msg: The preparation failed.
  when: drained is failed

- name: Approve the events of this VM, unless they hit others too
  azure_imds.scheduled_events.event_approve:
    event_ids: "{{ coming.events | selectattr('resources', 'equalto', [coming.resource_name]) | map(attribute='event_id') }}"

# This is for the linear strategy, Ansible's default: all hosts of ansible_play_batch have come this
# far, and those that failed are not in it. run_once would not do: it takes one host, whether the
# event hits it or not. Here the first VM of the event approves.
- name: Approve once for all VMs of an event, if each of them is a host of this play that is ready
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
          do: approve
"""

RETURN = r"""
approvals:
  description: What was done about each event, and why. Events that the selection leaves out are not listed.
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
        - V(approved) when IMDS took the approval, or would be asked for it in check mode.
        - V(already_approved) when there is a receipt, V(started) when there is nothing left to approve.
        - V(not_found) when IMDS lists no such event, V(not_selected) when other options leave out an event of
          O(event_ids), V(not_due) when the policy does not approve it now.
        - V(others_affected) when it needs O(release_others). The module fails if it is one of O(event_ids).
        - V(failed) when IMDS did not take the approval. The module fails.
      type: str
      sample: approved
    reason:
      description: One sentence for people.
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
  description: Ids of the events that were approved, or would be in check mode.
  returned: when IMDS could be read
  type: list
  elements: str
  sample: [2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11]
incarnation:
  description: Number of the document on which the decision rests, or null where missing.
  returned: when IMDS could be read
  type: int
  sample: 2
resource_name:
  description: Name of this VM as Azure knows it, or null where it was not needed or not found.
  returned: when IMDS could be read
  type: str
  sample: vm1
imds_error:
  description: What went wrong with IMDS, in the form that M(azure_imds.scheduled_events.event_info) documents.
  returned: when the events could not be read
  type: dict
  sample:
    kind: ImdsRefused
    message: "IMDS at http://169.254.169.254 answered 500 to GET /metadata/scheduledevents?api-version=2020-07-01: Internal error"
    status: 500
    retryable: true
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import (
    event_module,
    fail_json,
    open_session,
    parse_selection,
    warn_about,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.approval import (
    ApprovalResult,
    approve,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.approval_plan import (
    ALREADY_APPROVED,
    APPROVE,
    APPROVED,
    OTHERS_AFFECTED,
    ApprovalCriteria,
    ApprovalOutcome,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    escape_surrogates,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.policy_file import (
    load_policy,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.receipts import (
    default_folder,
)

OPTIONS: dict[str, t.Any] = dict(
    policy=dict(type="raw"),
    policy_file=dict(type="path"),
    prepared=dict(type="str", choices=["none", "running", "ok", "failed"], default="none"),
    gates=dict(type="dict", default={}),
    release_others=dict(type="bool", default=False),
    receipts=dict(type="path"),
)


def parse_criteria(module: AnsibleModule) -> ApprovalCriteria:
    """Return the criteria that the module's options describe, without this VM's name."""
    params = module.params
    selection = parse_selection(module)
    try:
        policy = params["policy"] if params["policy_file"] is None else load_policy(params["policy_file"])
        return ApprovalCriteria.parse(selection, policy, params["prepared"], params["gates"], params["release_others"])
    except ValueError as error:
        fail_json(module, error)


def approval_diff(done: ApprovalResult) -> dict[str, t.Any]:
    """The diff: which of the events that are to be approved, or were before, are so."""
    concerned = {item.event_id for item in done.plan if item.outcome in (APPROVE, ALREADY_APPROVED)}

    def state(listed: list[ApprovalOutcome], good: tuple[str, ...]) -> dict[str, str]:
        return {
            escape_surrogates(item.event_id): "approved" if item.outcome in good else "not approved"
            for item in listed
            if item.event_id in concerned
        }

    return {
        "before": {"events": state(done.plan, (ALREADY_APPROVED,))},
        "after": {"events": state(done.items, (APPROVE, APPROVED, ALREADY_APPROVED))},
    }


def main() -> None:
    module = event_module(
        timeout=130,
        options=OPTIONS,
        required_one_of=[["policy", "policy_file", "event_ids", "types", "statuses", "sources"]],
        mutually_exclusive=[["policy", "policy_file"]],
    )
    criteria = parse_criteria(module)
    try:
        done = approve(
            open_session(module), criteria, module.params["receipts"] or default_folder(), send=not module.check_mode
        )
    except ImdsError as error:
        fail_json(module, error)
    warn_about(module, done.document)
    for text in done.warnings:
        module.warn(text)
    for item in done.items:
        if item.outcome == OTHERS_AFFECTED:
            module.warn(f"{escape_surrogates(item.event_id)} was not approved: {item.reason}")
    result = dict(done.as_dict(), diff=approval_diff(done))
    problem = done.failure(criteria.selection.event_ids or ())
    if problem:
        module.fail_json(msg=problem, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
