#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: event_wait
short_description: Wait until an Azure Scheduled Event comes, starts or is over
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Polls the Instance Metadata Service of the VM on which it runs, inside one module process, until the selected events
    are in the wanted state.
  - An IMDS that gives no good answer does not end the wait, and is never taken for "no events". The module then polls
    more slowly, and returns what it saw.
notes:
  - In check mode the module asks IMDS once, for 10 seconds at the most, and returns at once what it saw.
  - The module may run under C(async).
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.reads
  - azure_imds.scheduled_events._attributes.actiongroup
options:
  state:
    description:
      - V(present) waits until there is a selected event.
      - V(scheduled) and V(started) wait until there is one with that status.
      - V(absent) waits until there is none, which is how Azure tells that an event is over. An event of O(event_ids) that is
        still listed is there, whatever else is said of it. Two good documents in a row have to show that there is none; the
        second is read within a second of the first, also when O(timeout) has passed.
    type: str
    choices: [present, scheduled, started, absent]
    default: present
  timeout:
    description: Seconds after which the module gives up and fails.
    type: float
    default: 900
  poll_interval:
    description: Seconds between polls. Azure recommends 1.
    type: float
    default: 1
seealso:
  - module: azure_imds.scheduled_events.event_info
  - module: azure_imds.scheduled_events.event_approve
"""

EXAMPLES = r"""
- name: Wait for an hour for something to come
  azure_imds.scheduled_events.event_wait:
    state: scheduled
    timeout: 3600
  register: coming

- name: Wait for the start of these events, which may be over between two looks
  azure_imds.scheduled_events.event_wait:
    state: started
    event_ids: "{{ coming.events | map(attribute='event_id') }}"
  register: start
  failed_when: start.outcome | default('') not in ['reached', 'gone', 'checked']

- name: Wait until they are over
  azure_imds.scheduled_events.event_wait:
    state: absent
    event_ids: "{{ coming.events | map(attribute='event_id') }}"
    timeout: 1800
"""

RETURN = r"""
outcome:
  description:
    - V(reached) when the state was seen, V(timeout) when it was not.
    - V(gone) when none of O(event_ids) is in the document at two looks in a row, so that waiting for another state than
      V(absent) would be in vain. The events were cancelled, or were over between two polls. The module fails.
    - V(checked) in check mode.
  returned: when IMDS was asked
  type: str
  sample: reached
events:
  description: The selected events as seen last, in the form that M(azure_imds.scheduled_events.event_info) documents.
  returned: when IMDS was asked
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
elapsed:
  description: Seconds that the wait took.
  returned: when IMDS was asked
  type: float
  sample: 4.02
incarnation:
  description: Number of the document seen last, or null where there was none.
  returned: when IMDS was asked
  type: int
  sample: 2
resource_name:
  description: Name of this VM as Azure knows it, or null where it was not needed or not found.
  returned: when IMDS was asked
  type: str
  sample: vm1
imds_errors:
  description: How many polls brought no good answer.
  returned: when IMDS was asked
  type: int
  sample: 0
imds_error:
  description: The latest error of IMDS, in the form that M(azure_imds.scheduled_events.event_info) documents.
  returned: when a poll brought no good answer
  type: dict
  sample:
    kind: ImdsRefused
    message: "IMDS at http://169.254.169.254 answered 500 to GET /metadata/scheduledevents?api-version=2020-07-01: Internal error"
    status: 500
    retryable: true
"""

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import (
    event_module,
    fail_json,
    open_session,
    parse_selection,
    warn_about,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.waiting import (
    STATES,
    EventWait,
)


def main() -> None:
    module = event_module(
        timeout=900,
        options=dict(
            state=dict(type="str", choices=list(STATES), default="present"),
            poll_interval=dict(type="float", default=1),
        ),
    )
    if module.params["poll_interval"] < 0.25:
        module.fail_json(msg="poll_interval has to be at least 0.25 seconds: IMDS answers 5 requests a second")
    chosen = parse_selection(module)
    try:
        watch = EventWait(module.params["state"], chosen, open_session(module, module.params["poll_interval"]))
        waited = watch.poll_once() if module.check_mode else watch.wait(module.params["timeout"])
    except ImdsError as error:
        fail_json(module, error)
    warn_about(module, waited.document)
    if waited.errors:
        module.warn(f"IMDS gave no good answer to {waited.errors} polls, at last: {waited.last_error}")
    result = watch.result(waited)
    if module.check_mode:
        module.exit_json(changed=False, outcome="checked", **result)
    outcome = watch.outcome(waited)
    if outcome == "reached":
        module.exit_json(changed=False, outcome=outcome, **result)
    module.fail_json(msg=watch.failure(waited), outcome=outcome, **result)


if __name__ == "__main__":
    main()
