#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_note
short_description: Write or remove the note of a maintenance run on a host
version_added: 0.2.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - The note of a host names the run of the role P(azure_imds.scheduled_events.maintenance#role) that is responsible for
    the host, from before the first prepare task until after the last recover task. The next run reads it, even if the
    run that wrote it was interrupted.
  - Only one of several concurrent runs can write the note, even if they are on different controllers.
  - The module waits up to 30 seconds for commands of an earlier run's recover tasks that are still running on the host.
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
    type: float
    default: 3600
  take_over:
    description: Whether to replace the note of any other run.
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
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_module import NOTES, note_file
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import (
    Note,
    NoteFile,
    NoteHeld,
    describe_note,
    run_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_watch import (
    RECOVER,
    processes_of,
)

# seconds to wait for commands of an earlier recovery, which would undo the next preparation
COMMANDS_TIMEOUT = 30
REMEDY = "wait until it has ended, or set maintenance_take_over if it is known to have ended"


def write(module: AnsibleModule, notes: NoteFile) -> dict[str, t.Any]:
    """Write the note, and return the module's result; fail if the note belongs to another run."""
    p = module.params
    try:
        note = notes.claim(
            p["run"], p["events"], p["expires"], p["replaces"], p["take_over"], write=not module.check_mode
        )
    except NoteHeld as held:
        module.fail_json(msg=f"{held}; {REMEDY}", file=notes.path, found=held.note)
    is_prepared_next = any(event.get("status") != "Started" for event in p["events"])
    if is_prepared_next and not module.check_mode:
        wait_for_commands(module, note)
    return dict(changed=True, note=note)


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


def end(module: AnsibleModule, notes: NoteFile) -> dict[str, t.Any]:
    """Leave or remove the note, and return the module's result; fail if it belongs to another run."""
    p, run_id = module.params, module.params["run"]["id"]
    found = notes.read()
    is_own = found is not None and run_of(found) == run_id
    other = found if found is not None and not is_own else None
    if is_own and not module.check_mode:
        other = notes.leave(run_id, p["reason"]) if p["state"] == "left" else notes.remove(run_id)
    if module.check_mode:
        # this run has written no note in check mode; it would have replaced the one that is there
        return dict(changed=found is not None)
    if other is not None:
        module.fail_json(
            msg=f"{describe_note(notes.path, other)}: another run has taken over the host", file=notes.path, found=other
        )
    return dict(changed=is_own)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=dict(
            notes=NOTES,
            state=dict(type="str", choices=["present", "left", "absent"], default="present"),
            events=dict(type="list", elements="dict", default=[]),
            expires=dict(type="float", default=3600),
            take_over=dict(type="bool", default=False),
            reason=dict(type="str", default=""),
            run=dict(type="dict"),
            replaces=dict(type="str"),
        ),
        supports_check_mode=True,
    )
    notes = note_file(module)
    try:
        result = write(module, notes) if module.params["state"] == "present" else end(module, notes)
    except OSError as error:
        module.fail_json(
            msg=f"{notes.path}: the note cannot be written: {error.strerror}; use become or set maintenance_notes"
        )
    module.exit_json(file=notes.path, **result)


if __name__ == "__main__":
    main()
