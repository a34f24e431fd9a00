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
  - An IMDS that gives no good answer does not end the wait, and is never taken for "no events". The module polls more
    slowly meanwhile, and tells in its result what it saw.
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
        still listed is there, whatever else is said of it.
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

- name: Wait until these events are over
  azure_imds.scheduled_events.event_wait:
    state: absent
    event_ids: "{{ coming.events | map(attribute='event_id') }}"
    timeout: 1800

- name: Wait for the start of an approved event, which may be over between two looks
  azure_imds.scheduled_events.event_wait:
    state: started
    event_ids: "{{ coming.events | map(attribute='event_id') }}"
  register: start
  failed_when: start.outcome | default('') not in ['reached', 'gone', 'checked']
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

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import (
    ONE_ANSWER,
    Conversation,
    describe,
    event_module,
    fail,
    selection,
    warn_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import EventDocument
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.selection import Selection
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.waiting import (
    Waited,
    wait_for,
)

# absent this often in a row: one missing sight may be a neighbour's document that is a moment ahead of ours
_SIGHTS_OF_ABSENCE = 2


class Watch:
    """The condition of the wait, asked once for each good document."""

    def __init__(self, state: str, chosen: Selection, conversation: Conversation) -> None:
        self._state = state
        self._chosen = chosen
        self._conversation = conversation
        self._absences = 0

    def ended(self, document: EventDocument) -> bool:
        return self.reached(document) or self.gone(document)

    def reached(self, document: EventDocument) -> bool:
        events = self._chosen.pick(document, self._conversation.known_name)
        if self._state == "absent":
            return not events and not self._hidden(document)
        statuses = {event.status.lower() for event in events}
        return bool(events) if self._state == "present" else self._state in statuses

    def _hidden(self, document: EventDocument) -> bool:
        """Whether a selected event may be there although it is not picked: something about it could not be read."""
        listed = any(document.find(event_id) is not None for event_id in self._chosen.event_ids or ())
        return listed or not document.complete or any(not event.resources for event in document.events)

    def gone(self, document: EventDocument) -> bool:
        """Whether every event that was asked for by id has left."""
        ids = self._chosen.event_ids or ()
        listed = any(document.find(event_id) is not None for event_id in ids)
        self._absences = 0 if listed or not document.complete else self._absences + 1
        return bool(ids) and self._absences >= _SIGHTS_OF_ABSENCE

    def result(self, waited: Waited) -> dict[str, t.Any]:
        document = waited.document
        picked = self._chosen.pick(document, self._conversation.known_name) if document is not None else []
        result = {
            "events": [event.as_dict() for event in picked],
            "elapsed": round(waited.elapsed, 2),
            "incarnation": document.incarnation if document is not None else None,
            "resource_name": self._conversation.known_name,
            "imds_errors": waited.errors,
        }
        if waited.last_error is not None:
            result["imds_error"] = describe(waited.last_error)
        return result


def look(poll: t.Callable[[float], EventDocument], clock: t.Callable[[], float]) -> Waited:
    """What one poll sees, for check mode."""
    started = clock()
    try:
        return Waited(True, poll(ONE_ANSWER), clock() - started, 0, None)
    except ImdsError as error:
        return Waited(False, None, clock() - started, 1, error)


def failure(state: str, waited: Waited) -> str:
    if waited.reached:
        return "the events are gone and were not seen %s: they were cancelled, or were over between two polls" % state
    if waited.document is None:
        return "nothing is known of the events after %.0f seconds: %s" % (waited.elapsed, waited.last_error)
    if state == "absent":
        return "the events are not over after %.0f seconds" % waited.elapsed
    return "no event is %s after %.0f seconds" % (state, waited.elapsed)


def main() -> None:
    module = event_module(
        timeout=900,
        options=dict(
            state=dict(type="str", choices=["present", "scheduled", "started", "absent"], default="present"),
            poll_interval=dict(type="float", default=1),
        ),
    )
    if module.params["poll_interval"] < 0.25:
        module.fail_json(msg="poll_interval has to be at least 0.25 seconds: IMDS answers 5 requests a second")
    chosen = selection(module)
    try:
        imds = Conversation(module, module.params["poll_interval"])
        watch = Watch(module.params["state"], chosen, imds)
        poll = imds.poll(name_required=chosen.needs_own_name)
        if module.check_mode:
            waited = look(poll, imds.pacer.clock)
        else:
            waited = wait_for(imds.pacer, poll, watch.ended, module.params["timeout"])
    except ImdsError as error:
        fail(module, error)
    warn_of(module, waited.document)
    if waited.errors:
        module.warn("IMDS gave no good answer to %d polls, at last: %s" % (waited.errors, waited.last_error))
    result = watch.result(waited)
    if module.check_mode:
        module.exit_json(changed=False, outcome="checked", **result)
    if waited.document is not None and waited.reached and watch.reached(waited.document):
        module.exit_json(changed=False, outcome="reached", **result)
    module.fail_json(
        msg=failure(module.params["state"], waited), outcome="gone" if waited.reached else "timeout", **result
    )


if __name__ == "__main__":
    main()
