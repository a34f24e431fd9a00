#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_note
short_description: Write or remove the note of a maintenance run on a host
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - The note of a host names the run of the role P(azure_imds.scheduled_events.maintenance#role) that is responsible for
    the host, from before the first prepare task until after the last recover task. The next run reads it, even if the
    run that wrote it was interrupted.
  - Only one of several concurrent runs can write the note, even if they are on different controllers.
  - The module waits up to 30 seconds for commands of an earlier run's recover tasks that are still running on the host
    as root or as the user of this task.
notes:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role).
  - An action plugin adds the identity of the run. A run counts as ended if it was on this controller and its process no
    longer exists.
extends_documentation_fragment:
  - azure_imds.scheduled_events._maintenance
  - azure_imds.scheduled_events._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Only the next run needs the note.
options:
  state:
    description:
      - V(present) writes the note. It fails if the host has the note of another run, unless that run has left the host,
        has ended on this controller, or has not updated the note for O(expires) seconds.
      - V(left) releases the host to the next run. The note remains, so that the next run recovers the host.
      - V(absent) removes the note of this run. It fails if the note belongs to another run.
    type: str
    choices: [present, left, absent]
    default: present
  events:
    description:
      - The events for which the host is prepared, in the form that M(azure_imds.scheduled_events.event_info) documents.
    type: list
    elements: dict
    default: []
  expires:
    description: Seconds without an update after which the note of another run counts as abandoned.
    type: raw
    default: 3600
  take_over:
    description: Whether to replace the note of any other run.
    type: bool
    default: false
  on_controller:
    description:
      - Whether the note is on the controller, in a folder for the host, because the host may be down or may not run
        modules in Python. Then the action plugin writes the note, and O(notes) is a directory on the controller.
    type: bool
    default: false
  reason:
    description: Why the run leaves the host, for O(state=left).
    type: str
    default: ''
  run:
    description: Identity of the run. The action plugin sets it.
    type: dict
  replaces:
    description: ID of a run that has ended. The action plugin sets it.
    type: str
seealso:
  - module: azure_imds.scheduled_events.maintenance_info
"""

EXAMPLES = r"""
- name: Write the note
  azure_imds.scheduled_events.maintenance_note:
    events: "{{ coming.events }}"

- name: Remove the note
  azure_imds.scheduled_events.maintenance_note:
    state: absent
"""

RETURN = r"""
file:
  description: The path of the note.
  returned: always
  type: str
  sample: /var/lib/azure-scheduled-events/maintenance/note.json
note:
  description: The note as the module wrote it, or would write it in check mode.
  returned: success and O(state=present)
  type: dict
  sample:
    version: 1
    run:
      id: controller-4711-842342
      host: controller
      user: alice
      pid: 4711
    earlier_runs: []
    written: '2026-11-21T10:00:00Z'
    updated: '2026-11-21T10:00:00Z'
    held: true
    events: []
found:
  description: The note of another run.
  returned: when the host has one and the module does not replace it
  type: dict
  sample: null
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_module import note_file
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import Note
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note_states import (
    NOTE_OPTIONS,
    set_note,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_watch import (
    RECOVER,
    processes_of,
)

# seconds to wait for commands of an earlier recovery, which would undo the next preparation
COMMANDS_TIMEOUT = 30


def wait_for_commands(module: AnsibleModule, note: Note) -> None:
    """Wait until no command of an earlier run's recover tasks is running; a service that they started may never end."""
    end = time.monotonic() + COMMANDS_TIMEOUT
    while True:
        busy = processes_of(note["earlier_runs"], RECOVER)
        if not busy:
            return
        if time.monotonic() > end:
            module.warn(f"a recover task of an earlier run started processes that are still running: {', '.join(busy)}")
            return
        time.sleep(0.5)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=NOTE_OPTIONS, supports_check_mode=True)
    result = set_note(note_file(module), module.params, module.check_mode)
    if result.get("failed"):
        module.fail_json(**result)
    is_prepared_next = any(event.get("status") != "Started" for event in module.params["events"])
    if "note" in result and is_prepared_next and not module.check_mode:
        wait_for_commands(module, result["note"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
