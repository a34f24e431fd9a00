#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_wait
short_description: Wait until a host that is prepared for scheduled events may recover
version_added: 0.2.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Waits until the events of the host's note are over, as M(azure_imds.scheduled_events.maintenance_note) has written it.
  - Survives reboots of the host, and connections that break or hang. An action plugin runs the module for O(attempt) seconds at a
    time, gives up a connection that has not answered O(grace) seconds later, and connects again until O(timeout) has passed.
  - Updates the note each time that the module runs, which shows other runs that this one is at work.
  - An event that comes during the wait and is due is added to the note. The host then stays prepared until that is over, too.
  - The events are not over while a command of a prepare task still runs on the host that lost its connection or its controller,
    unless it has run for O(task_timeout) seconds.
notes:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role). To wait for events use
    M(azure_imds.scheduled_events.event_wait).
extends_documentation_fragment:
  - azure_imds.scheduled_events._imds
  - azure_imds.scheduled_events._imds.selection
  - azure_imds.scheduled_events._maintenance
  - azure_imds.scheduled_events._maintenance.within
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.actiongroup
attributes:
  check_mode:
    support: full
    details: Returns at once.
  diff_mode:
    support: none
    details: The module changes at most the note, which is for the next run only.
options:
  timeout:
    description: Seconds after which the module gives up and fails.
    type: float
    default: 3600
  attempt:
    description: Seconds that the module waits at a time. A host that dies without closing its connection goes unnoticed for so long.
    type: float
    default: 60
  grace:
    description: Seconds beyond O(attempt) that Ansible may need to connect and to run the module.
    type: float
    default: 30
  prepared:
    description: Whether all prepare tasks of this run have come to their end. If not, their commands may still run on the host.
    type: bool
    default: true
  task_timeout:
    description:
      - Seconds after which a process that prepare tasks have left no longer counts as a command that still prepares the host. It is
        a service, or a command that hangs. V(0) is no limit.
    type: float
    default: 0
  run_id:
    description: ID of the run. The action plugin sets it.
    type: str
seealso:
  - module: azure_imds.scheduled_events.event_wait
  - module: azure_imds.scheduled_events.maintenance_note
"""

EXAMPLES = r"""
- name: Wait until this host may recover
  azure_imds.scheduled_events.maintenance_wait:
    timeout: 1800
"""

RETURN = r"""
outcome:
  description:
    - V(over) when the events are over, V(timeout) when they were not after O(timeout) seconds.
    - V(no_note) when there is no note, V(taken_over) when it is another run's. The module fails in the second case.
    - V(unreachable) when the host could not be reached at the end.
    - V(checked) in check mode.
  returned: always
  type: str
  sample: over
events:
  description:
    - The events of the note in the form that M(azure_imds.scheduled_events.event_info) documents, each with three more members.
    - C(listed) says whether it was listed at last, C(started) when it was first seen started, C(over) since when it is not listed.
  returned: when IMDS was asked
  type: list
  elements: dict
  sample:
    - event_id: 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11
      event_type: Reboot
      status: Started
      resources: [vm1, vm2]
      resource_type: VirtualMachine
      not_before: null
      description: Host server is undergoing maintenance.
      source: Platform
      duration_seconds: 9
      listed: false
      started: '2026-11-21T10:15:00Z'
      over: '2026-11-21T10:15:20Z'
obstacle:
  description: Why the host may not recover yet.
  returned: when RV(outcome) is V(timeout)
  type: str
  sample: Reboot 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11 is Started
elapsed:
  description: Seconds that the wait took.
  returned: always
  type: float
  sample: 42.1
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
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_module import (
    NOTES,
    WITHIN,
    note_file,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import (
    Note,
    NoteFile,
    described,
    run_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_watch import (
    PREPARE,
    MaintenanceWatch,
    processes_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.waiting import wait_for


def wait_with(module: AnsibleModule, notes: NoteFile) -> dict[str, t.Any]:
    """Wait if the host has the note of this run, and return what became of it. Raises ImdsError, and OSError where the note cannot be read."""
    nothing: dict[str, t.Any] = dict(changed=False, events=[])
    note = notes.read()
    if module.check_mode:
        return dict(nothing, outcome="checked")
    if note is None:
        return dict(nothing, outcome="no_note")
    if run_of(note) != module.params["run_id"]:
        return dict(
            nothing,
            outcome="taken_over",
            failed=True,
            msg=f"{described(notes.path, note)}: another run has taken over the host",
        )
    return wait(module, notes, note)


def wait(module: AnsibleModule, notes: NoteFile, note: Note) -> dict[str, t.Any]:
    """Wait for the end of the events. Raises ImdsError for what no wait can mend."""
    run_id, timeout = module.params["run_id"], module.params["timeout"]
    runs = note["earlier_runs"] + ([] if module.params["prepared"] else [run_id])
    chosen = parse_selection(module)
    imds = open_session(module)

    def hold(events: t.Sequence[t.Mapping[str, t.Any]] = ()) -> None:
        try:
            notes.update(run_id, events)
        except OSError as error:
            # the wait itself does not need it
            module.warn(f"{notes.path}: the note cannot be updated: {error.strerror}")

    hold()
    watch = MaintenanceWatch(
        chosen,
        module.params["within"],
        note["events"],
        lambda: imds.resource_name,
        lambda: processes_of(runs, PREPARE, module.params["task_timeout"]),
        hold,
    )
    waited = wait_for(imds.pacer, imds.event_poll(name_required=True), watch.ended, timeout, watch.confirms)
    warn_about(module, waited.document)
    result = dict(changed=False, events=watch.events, outcome="over" if waited.reached else "timeout")
    left = processes_of(runs, PREPARE) if waited.reached else []
    if left:
        module.warn(f"a prepare task has left these processes, which are not waited for: {', '.join(left)}")
    if not waited.reached:
        obstacle = str(waited.last_error) if waited.document is None else watch.obstacle()
        result.update(
            failed=True,
            obstacle=obstacle,
            msg=f"the events are not over after {waited.elapsed:.0f} seconds: {obstacle}",
        )
    return result


def main() -> None:
    module = event_module(
        timeout=3600,
        options=dict(
            notes=NOTES,
            within=WITHIN,
            attempt=dict(type="float", default=60),
            grace=dict(type="float", default=30),
            prepared=dict(type="bool", default=True),
            task_timeout=dict(type="float", default=0),
            run_id=dict(type="str"),
        ),
    )
    notes = note_file(module)
    try:
        result = wait_with(module, notes)
    except ImdsError as error:
        fail_json(module, error, outcome="timeout", events=[])
    except OSError as error:
        module.fail_json(msg=f"{notes.path}: the note cannot be used: {error.strerror}", outcome="timeout", events=[])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
