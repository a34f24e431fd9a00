#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_info
short_description: Read the scheduled events of a VM and the note of a maintenance run
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Reads what a run of the role P(azure_imds.scheduled_events.maintenance#role) has to know of a host. That is the
    scheduled events of the VM, and the note of an earlier or concurrent run.
  - Does not fail because of IMDS. RV(available) is V(false) instead.
notes:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role). Use M(azure_imds.scheduled_events.event_info) to
    read events.
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._maintenance
  - azure_imds.scheduled_events._maintenance.within
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.reads
  - azure_imds.scheduled_events._attributes.actiongroup
options:
  expected:
    description:
      - Events as other reporters list them, each with C(event_id) and C(resources). If the document does not list one
        of them for this VM, reads until it does, or until the event surely does not affect this VM.
    type: list
    elements: dict
    default: []
  timeout:
    description: Seconds for all requests to IMDS. The first answer on a VM may take two minutes.
    type: raw
    default: 130
seealso:
  - module: azure_imds.scheduled_events.event_info
  - module: azure_imds.scheduled_events.maintenance_note
"""

EXAMPLES = r"""
- name: Read the events of the next hour and the note
  azure_imds.scheduled_events.maintenance_info:
    within: 3600
  register: found
"""

RETURN = r"""
available:
  description: Whether all events are known. If not, there may be events that RV(events) does not list.
  returned: success
  type: bool
  sample: true
reason:
  description: Why events are unknown. Empty if RV(available) is V(true).
  returned: success
  type: str
  sample: ''
resource_name:
  description: Name of this VM as Azure knows it, or null if unknown.
  returned: success
  type: str
  sample: vm1
fault_domain:
  description:
    - The fault domain of this VM by its instance metadata, after the zone and a slash if the VM has a zone. Empty if
      unknown, or if the option O(resource_name) is set.
  returned: success
  type: str
  sample: '0'
boot:
  description: The identity of the present boot of the host, another one after each boot. Empty if the system has none.
  returned: success
  type: str
  sample: 1f0b5c3e-0d7e-4a3c-9a51-5c0e5f1f6b52
server_time:
  description: Time of the last answer by the clock of IMDS in ISO 8601 UTC, or null if IMDS has not answered with one.
  returned: success
  type: str
  sample: '2026-11-21T10:00:00Z'
events:
  description:
    - The selected events in the form that M(azure_imds.scheduled_events.event_info) documents, and the events of the
      note that are still listed, whether selected or not. Each has two more members.
    - C(key) is the ID in lower case. C(due) is true if the event has started, starts within O(within), or is one of
      the note.
  returned: success
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
      key: 2d6a9c1e-41b7-4f6b-9b0a-5e8c7f0d3a11
      due: true
note:
  description:
    - The note as M(azure_imds.scheduled_events.maintenance_note) writes it, with C(age) in seconds, or null if there is
      none.
  returned: success
  type: dict
  sample: null
"""

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import (
    event_module,
    parse_selection,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_module import (
    NOTES,
    WITHIN,
    note_file,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_watch import (
    is_due,
    read_expected,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.boot import boot_id
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import (
    fault_domain_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.timestamps import (
    as_utc_text,
)


def main() -> None:
    """Run the module."""
    module, call = event_module(
        timeout=130,
        options=dict(notes=NOTES, within=WITHIN, expected=dict(type="list", elements="dict", default=[])),
        needs_requests=False,
    )
    chosen = parse_selection(module, call)
    notes = note_file(module)
    try:
        note = notes.read()
    except OSError as error:
        module.fail_json(
            msg=f"{notes.path}: the note cannot be read: {error.strerror}; use become or set maintenance_notes"
        )
    held = {event["event_id"].casefold() for event in note["events"]} if note else set()
    result: dict[str, t.Any] = dict(changed=False, available=True, reason="", events=[], note=note)
    result.update(resource_name=None, fault_domain="", boot=boot_id(), server_time=None)
    try:
        imds = call.open_session()
        document = read_expected(imds, chosen.needs_own_name, call.params["expected"])
    except ImdsError as error:
        result.update(available=False, reason=str(error))
        module.exit_json(**result)
    call.warn_about(document)
    name = imds.resource_name
    if not document.complete:
        result.update(available=False, reason="an entry of the document could not be read, so more events may exist")
    events = [event for event in document.events if event.key in held or chosen.matches(event, name)]
    within = call.params["within"]
    shown = [
        dict(event.as_dict(), key=event.key, due=event.key in held or is_due(event, document, within))
        for event in events
    ]
    instance = imds.instance or {}
    result.update(resource_name=name, fault_domain=fault_domain_of(instance))
    result["events"] = shown
    if document.server_time is not None:
        result["server_time"] = as_utc_text(document.server_time)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
