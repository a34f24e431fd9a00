#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: event_wait
short_description: Wait until an Azure Scheduled Event is announced, starts or ends
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Polls the Instance Metadata Service of the VM on which it runs, inside one module process, until the selected events
    are in O(state).
  - Errors of IMDS do not end the wait, and never count as "no events". The module then polls more slowly, and returns
    the number of failed polls.
notes:
  - In check mode the module polls IMDS once, for at most 10 seconds, and returns the events at once.
  - The module can run under C(async), except for Windows hosts.
  - For a Windows host the task ends with the result UNREACHABLE only if the first request cannot reach the host. A
    connection that is lost later counts as a poll without a good answer, and may make the task 75 seconds longer
    than O(timeout).
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._attributes.windows
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.reads
  - azure_imds.scheduled_events._attributes.actiongroup
options:
  state:
    description:
      - V(present) waits until there is a selected event.
      - V(scheduled) and V(started) wait until there is a selected event with that status.
      - V(absent) waits until there is none, because Azure no longer lists an event that is over. A listed event of
        O(event_ids) is not absent, whatever its other values. At least two good documents in a row must list no
        selected event, and the module must have requested them 2 seconds apart, because the documents of Azure may
        differ for a moment. If the first one comes at the end of O(timeout), it reads the second one after that time.
    type: str
    choices: [present, scheduled, started, absent]
    default: present
  timeout:
    description: Seconds, or a text such as V(15m) or V(2h), after which the module gives up and fails.
    type: raw
    default: 900
  poll_interval:
    description:
      - Seconds between polls, at least V(0.25). Azure recommends 1.
      - On a Windows host an interval below 30 means 1. The host repeats the request itself, for up to 50 seconds in
        each run of a module.
    type: raw
    default: 1
seealso:
  - module: azure_imds.scheduled_events.event_info
  - module: azure_imds.scheduled_events.event_approve
"""

EXAMPLES = r"""
- name: Wait up to an hour for an event
  azure_imds.scheduled_events.event_wait:
    state: scheduled
    timeout: 3600
  register: coming

- name: Wait for the start of these events, which may be over between two polls
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
    - V(reached) if the events reached O(state), V(timeout) if they did not.
    - V(gone) if all of O(event_ids) are absent, and O(state) is not V(absent). The events were cancelled, or were over
      between two polls. The module fails.
    - V(checked) in check mode.
  returned: when the module polled IMDS
  type: str
  sample: reached
events:
  description:
    - The selected events of the last document, in the form that M(azure_imds.scheduled_events.event_info) documents.
  returned: when the module polled IMDS
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
  description: Duration of the wait in seconds.
  returned: when the module polled IMDS
  type: float
  sample: 4.02
incarnation:
  description: Incarnation number of the last document, or null if there was none.
  returned: when the module polled IMDS
  type: int
  sample: 2
resource_name:
  description: Name of this VM as Azure knows it, or null if it was not needed or not found.
  returned: when the module polled IMDS
  type: str
  sample: vm1
imds_errors:
  description: Number of polls without a good answer.
  returned: when the module polled IMDS
  type: int
  sample: 0
imds_error:
  description: The latest error of IMDS, in the form that M(azure_imds.scheduled_events.event_info) documents.
  returned: when a poll had no good answer
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
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.wait import EVENT_WAIT


def main() -> None:
    """Run the module."""
    run_task(EVENT_WAIT)


if __name__ == "__main__":
    main()
