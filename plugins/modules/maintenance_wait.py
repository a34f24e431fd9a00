#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_wait
short_description: Wait until a host that is prepared for scheduled events may recover
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Waits until the events of the host's note are over. M(azure_imds.scheduled_events.maintenance_note) writes the note.
  - An event is over when at least two good documents in a row, requested 2 seconds apart, do not list it, or do not
    name the VM of the host in it.
  - Continues after reboots of the host, and after connections that break or hang. An action plugin runs the module for
    O(attempt) seconds at a time, gives up a connection that does not answer within another O(grace) seconds, and
    connects again until O(timeout) has passed.
  - Uses none of Ansible's forks while it waits, but two processes on the controller. Under the strategy C(free) any
    number of hosts can therefore wait at the same time.
  - Updates the note in each of these attempts. Other runs therefore know that this run is active.
  - Adds an event that is announced during the wait and is due to the note. The host then stays prepared until the end
    of that event too.
  - The events are not over while a command of a prepare task is still running on the host without its connection or
    controller, as root or as the user of this task, unless it has run for O(task_timeout) seconds.
notes:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role). Use M(azure_imds.scheduled_events.event_wait) to
    wait for events.
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
    details: The module returns at once.
  diff_mode:
    support: none
    details: The module changes only the note, which only the next run needs.
options:
  timeout:
    description: Seconds after which the module gives up and fails.
    type: raw
    default: 3600
  attempt:
    description:
      - Seconds for each attempt. If the host stops without closing its connection, the module notices only after this
        time.
    type: float
    default: 60
  grace:
    description: Seconds beyond O(attempt) that Ansible may need to connect and to run the module.
    type: float
    default: 30
  prepared:
    description: Whether all prepare tasks of this run have ended. If not, their commands may still run on the host.
    type: bool
    default: true
  task_timeout:
    description:
      - Seconds after which a process of a prepare task no longer counts as part of the preparation, but as a service or
        a command that hangs. With V(0) there is none.
    type: float
    default: 0
  removed_after:
    description:
      - Seconds without an answer after which a host counts as removed by Azure, if it has a Preempt or a Terminate that
        has started, was approved by this run, or has reached its C(NotBefore). The action plugin reads this option.
    type: float
    default: 120
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
    - V(over) if the events are over, V(timeout) if they were not over after O(timeout) seconds.
    - V(no_note) if there is no note. V(taken_over) if the note belongs to another run, and the module fails.
    - V(unreachable) if the last attempt could not reach the host.
    - V(removed) if Azure has removed the VM, see O(removed_after). V(continues) if the wait ended before O(timeout), so
      that the next run can prepare for an event that waits for it.
    - V(checked) in check mode.
  returned: always
  type: str
  sample: over
events:
  description:
    - The events of the note in the form that M(azure_imds.scheduled_events.event_info) documents. Each has four more
      members.
    - C(listed) is true if the last document lists the event. C(started) is when the event was first seen started, and
      C(over) when it was over. C(last_not_before) is the last C(not_before) before the start.
  returned: when the module polled IMDS
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
      last_not_before: '2026-11-21T10:15:00Z'
obstacle:
  description: Why the host may not recover yet.
  returned: when RV(outcome) is V(timeout)
  type: str
  sample: Reboot 2D6A9C1E-41B7-4F6B-9B0A-5E8C7F0D3A11 is Started
elapsed:
  description: Duration of the wait in seconds.
  returned: always
  type: float
  sample: 42.1
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_module import (
    end,
    event_module,
    parse_selection,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.event_task import (
    EventCall,
    failure,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_module import (
    NOTES,
    WITHIN,
    note_file,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import (
    Note,
    NoteFile,
    describe_note,
    run_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_watch import (
    PREPARE,
    MaintenanceWatch,
    processes_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.waiting import wait_for


def wait_with(module: AnsibleModule, call: EventCall, notes: NoteFile) -> dict[str, t.Any]:
    """Wait if the host has the note of this run, and return the module's result.

    The result has ``failed`` where the module fails.

    Raises:
        ImdsError: IMDS supports none of the api-versions.
        OSError: the note cannot be read.
    """
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
            msg=f"{describe_note(notes.path, note)}: another run has taken over the host",
        )
    return wait(module, call, notes, note)


def wait(module: AnsibleModule, call: EventCall, notes: NoteFile, note: Note) -> dict[str, t.Any]:
    """Wait for the end of the events and return the result; raise ImdsError for an unsupported api-version."""
    run_id, timeout = module.params["run_id"], call.params["timeout"]
    runs = note["earlier_runs"] + ([] if module.params["prepared"] else [run_id])
    chosen = parse_selection(module, call)
    imds = call.open_session()

    def hold(events: t.Sequence[t.Mapping[str, t.Any]] = ()) -> None:
        try:
            notes.update(run_id, events)
        except OSError as error:
            # the wait does not depend on it
            module.warn(f"{notes.path}: the note cannot be updated: {error.strerror}")

    hold()
    watch = MaintenanceWatch(
        chosen,
        call.params["within"],
        note["events"],
        lambda: imds.resource_name,
        lambda: processes_of(runs, PREPARE, module.params["task_timeout"]),
        hold,
    )
    waited = wait_for(imds, True, watch.tracker, watch.ended, timeout)
    call.warn_about(waited.document)
    result = dict(changed=False, events=watch.events, outcome="over" if waited.reached else "timeout")
    running = ", ".join(processes_of(runs, PREPARE)) if waited.reached else ""
    if running:
        module.warn(f"processes of a prepare task are still running; the module does not wait for them: {running}")
    if not waited.reached:
        obstacle = str(waited.last_error) if waited.document is None else watch.blocked_by()
        result.update(
            failed=True,
            obstacle=obstacle,
            msg=f"the events are not over after {waited.elapsed:.0f} seconds: {obstacle}",
        )
    return result


def main() -> None:
    """Run the module."""
    module, call = event_module(
        timeout=3600,
        options=dict(
            notes=NOTES,
            within=WITHIN,
            attempt=dict(type="float", default=60),
            grace=dict(type="float", default=30),
            prepared=dict(type="bool", default=True),
            task_timeout=dict(type="float", default=0),
            removed_after=dict(type="float", default=120),
            run_id=dict(type="str"),
        ),
    )
    notes = note_file(module)
    try:
        result = wait_with(module, call, notes)
    except ImdsError as error:
        end(module, failure(error, outcome="timeout", events=[]))
    except OSError as error:
        module.fail_json(msg=f"{notes.path}: the note cannot be used: {error.strerror}", outcome="timeout", events=[])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
