#!/usr/bin/python
# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hook_runner_info
short_description: Read the state of the hook runner on a VM
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Reads the state of the daemon that the role P(azure_imds.scheduled_events.hook_runner#role) installs, by its command
    C(azure-scheduled-events). The state has the events that the daemon knows, and the progress of their preparation.
  - Can wait until the preparation or the recovery has ended. The wait uses none of Ansible's forks, but two processes
    on the controller.
  - Does not fail because of the daemon. RV(available) is V(false) instead, and RV(reason) has the problem and a remedy.
  - The daemon answers root, and the members of the groups that its configuration names.
extends_documentation_fragment:
  - azure_imds.scheduled_events._attributes
  - azure_imds.scheduled_events._attributes.reads
options:
  command:
    description: Path of the command on the target. A name without a slash is searched for in C(PATH).
    type: path
    default: /usr/local/bin/azure-scheduled-events
  config:
    description: Path of the daemon's configuration on the target, if it is not the default one.
    type: path
  wait_for:
    description:
      - V(prepared) waits until the preparation for each event has ended, with success or not. V(recovered) waits until
        no event affects this VM and its maintenance is over.
      - The wait ends early when an event appears that O(event_ids) does not name, if it names any. In check mode the
        module does not wait.
      - While the daemon does not answer, the wait continues, unless the command is not installed.
    type: str
    choices: [nothing, prepared, recovered]
    default: nothing
  event_ids:
    description: IDs of the events to wait for. By default all that the daemon knows and that affect this VM.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds, or a text such as V(15m), for the wait. The module reads the state at least once.
    type: raw
    default: 60
  interval:
    description: Seconds between two reads during the wait, at least V(0.1).
    type: raw
    default: 1
  history:
    description:
      - The number of newest maintenances to read for RV(history) and for the times of RV(events), at least 1.
    type: int
    default: 20
seealso:
  - module: azure_imds.scheduled_events.event_approve
  - name: Handle events with the hook runner
    description: The daemon, its stages, and the setting C(leader).
    link: https://github.com/azure-imds/scheduled_events/blob/main/docs/hook-runner.md
"""

EXAMPLES = r"""
- name: Read the state of the hook runner
  azure_imds.scheduled_events.hook_runner_info:
  become: true
  register: hook_runner

- name: Fail if the hook runner does not protect this VM
  ansible.builtin.assert:
    that:
      - hook_runner.available
      - hook_runner.imds_ok
      - hook_runner.paused is none
    fail_msg: "{{ hook_runner.reason or 'the hook runner is paused, or has no answer of IMDS; see its status' }}"

- name: Wait up to ten minutes until the VM is prepared for its events
  azure_imds.scheduled_events.hook_runner_info:
    wait_for: prepared
    timeout: 600
  become: true
"""

RETURN = r"""
available:
  description: Whether the daemon has answered. If not, RV(events) and RV(history) are empty.
  returned: success
  type: bool
  sample: true
state:
  description:
    - V(running), or why the daemon has not answered. V(not_installed), V(not_running), V(not_permitted),
      V(bad_configuration), V(too_old) or V(no_answer).
  returned: success
  type: str
  sample: running
reason:
  description: The problem and a remedy as one sentence. Empty if RV(available) is V(true).
  returned: success
  type: str
  sample: ''
reached:
  description: Whether the daemon has reached the state of O(wait_for).
  returned: success
  type: bool
  sample: true
version:
  description: Version of the daemon, or null if unknown.
  returned: success
  type: str
  sample: 0.1.0
resource_name:
  description: Name of this VM as Azure knows it, or null if unknown.
  returned: success
  type: str
  sample: vm1
policy:
  description: Name of the daemon's policy.
  returned: success
  type: str
  sample: prepared first
leader:
  description: The setting C(leader) of the daemon.
  returned: success
  type: str
  sample: external
dry_run:
  description: Whether the daemon approves nothing.
  returned: success
  type: bool
  sample: false
paused:
  description:
    - Since when, until when, by whom and why the daemon is paused, as C(since), C(until), C(by) and C(reason). Null
      if it is not paused.
  returned: success
  type: dict
  sample: null
imds_ok:
  description: Whether the daemon's last request to IMDS succeeded.
  returned: success
  type: bool
  sample: true
confirmed:
  description:
    - Whether the daemon has read two documents since its start, and its last request to IMDS succeeded. Until then the
      daemon approves nothing, and an event or a VM may be missing in RV(events).
  returned: success
  type: bool
  sample: true
records_ok:
  description: Whether the daemon can write its records.
  returned: success
  type: bool
  sample: true
maintenance:
  description:
    - The open maintenance of this VM. It begins with the first event, and ends when the VM has recovered after the last
      one. Null if there is none.
  returned: success
  type: dict
  contains:
    id:
      description: The ID of the maintenance.
      type: str
      sample: '1800000000000'
    phase:
      description: V(preparing), V(prepared), V(started), or V(recovering) after the last event.
      type: str
      sample: prepared
    since:
      description: Time in ISO 8601 UTC at which it began.
      type: str
      sample: '2026-11-21T10:00:00Z'
    not_recovered:
      description: Names of the recover hooks that have failed and have not succeeded since.
      type: list
      elements: str
      sample: []
  sample: null
events:
  description:
    - The events that are not over, in the form that M(azure_imds.scheduled_events.event_info) documents, with more
      members. A member that the daemon does not report is null.
  returned: success
  type: list
  elements: dict
  contains:
    key:
      description: The event ID in lower case.
      type: str
      sample: 2d6a9c1e-41b7-4f6b-9b0a-5e8c7f0d3a11
    listed:
      description: Whether the daemon's last document lists the event.
      type: bool
      sample: true
    named:
      description:
        - The VMs that the last document names for the event, in lower case. C(resources) also has those that may not be
          gone.
      type: list
      elements: str
      sample: [vm1, vm2]
    readable:
      description: Whether the last document that lists the event gives its VMs in readable form.
      type: bool
      sample: true
    affects_self:
      description: Whether the event affects this VM.
      type: bool
      sample: true
    prepared_state:
      description: State of the preparation. V(none), V(running), V(ok) or V(failed).
      type: str
      sample: ok
    approval:
      description: V(sent), V(accepted) or V(refused) if the daemon itself has approved the event, else null.
      type: str
      sample: null
    approval_error:
      description: The error of the daemon's last approval.
      type: str
      sample: null
    seconds_left:
      description: Seconds until C(not_before), by the clock of IMDS.
      type: int
      sample: 840
    waiting:
      description: The reason why the daemon does not approve the event now, or null.
      type: str
      sample: null
    failed_hooks:
      description: The prepare hooks whose last run for this event has not succeeded, with their states.
      type: list
      elements: str
      sample: []
    outcome:
      description: V(completed) or V(unknown) after the end.
      type: str
      sample: null
    prepared:
      description:
        - Time in ISO 8601 UTC at which the VM was prepared. C(approved), by the daemon itself, C(started), C(over) and
          C(recovered), at the end of the maintenance, are the times of these steps.
      type: str
      sample: '2026-11-21T10:01:12.000Z'
  sample: []
history:
  description:
    - The events of the newest maintenances in the same form, oldest first, and those of O(event_ids) that are over and
      for which no hook ran. The state of the last document is missing.
    - C(given_up_by) is the operator who ended the recovery, or null. C(recovered) is null then.
  returned: success
  type: list
  elements: dict
  sample: []
"""

import os
import time
import typing as t
from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._hook_runner_status import (
    NO_ANSWER_STATE,
    NOT_INSTALLED_STATE,
    RUNNING,
    Unreadable,
    add_times,
    has_reached,
    parse_history,
    parse_others,
    parse_status,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.options import (
    parse_option,
    parse_seconds,
)

_UNKNOWN: dict[str, t.Any] = dict(
    version=None,
    resource_name=None,
    policy=None,
    leader=None,
    dry_run=False,
    paused=None,
    imds_ok=False,
    confirmed=False,
    records_ok=False,
    maintenance=None,
    events=[],
    history=[],
    reached=False,
)


class Reader:
    """Runs the command; ``module`` has the options."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        params = module.params
        command = params["command"]
        path = command if "/" in command else module.get_bin_path(command)
        self._command = path if path and os.path.exists(path) else None
        self._subject = command
        self._config = ["--config", params["config"]] if params["config"] else []

    def read(self) -> dict[str, t.Any]:
        """Return the result of one read."""
        goal, wanted = self._module.params["wait_for"], [each.casefold() for each in self._module.params["event_ids"]]
        try:
            known = parse_status(*self._run("status"))
        except Unreadable as error:
            return dict(_UNKNOWN, available=False, state=error.state, reason=f"{self._subject}: {error}")
        # records that cannot be read cost only the times
        history = parse_history(self._run("history", "--limit", str(max(self._module.params["history"], 1)))[1])
        if not {event["key"] for event in known["events"] + history}.issuperset(wanted):
            others = parse_others(self._run("history", "--others", "--all")[1])
            history = [event for event in others if event["key"] in wanted] + history
        add_times(known["events"], history)
        reached = goal == "nothing" or has_reached(goal, wanted, known, history)
        return dict(known, history=history, available=True, state=RUNNING, reason="", reached=reached)

    def _run(self, *words: str) -> tuple[int, str, str]:
        if self._command is None:
            raise Unreadable(
                NOT_INSTALLED_STATE,
                "there is no such command; apply the role azure_imds.scheduled_events.hook_runner",
            )
        verb, *rest = words
        try:
            ran: tuple[int, str, str] = self._module.run_command(
                [self._command, verb, *self._config, "--json", *rest], encoding="utf-8", handle_exceptions=False
            )
        except OSError as error:
            raise Unreadable(NO_ANSWER_STATE, f"{error.strerror}; run it by hand") from None
        return ran


def wait_for(
    read: t.Callable[[], dict[str, t.Any]],
    timeout: float,
    interval: float,
    clock: t.Callable[[], float] = time.monotonic,
    sleep: t.Callable[[float], None] = time.sleep,
) -> dict[str, t.Any]:
    """Read until the goal is reached, or for ``timeout`` seconds; return the last result."""
    until = clock() + timeout
    while True:
        result = read()
        left = until - clock()
        if result["reached"] or left <= 0 or result["state"] == NOT_INSTALLED_STATE:
            return result
        sleep(min(interval, left))


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=dict(
            command=dict(type="path", default="/usr/local/bin/azure-scheduled-events"),
            config=dict(type="path"),
            wait_for=dict(type="str", choices=["nothing", "prepared", "recovered"], default="nothing"),
            event_ids=dict(type="list", elements="str", default=[]),
            timeout=dict(type="raw", default=60),
            interval=dict(type="raw", default=1),
            history=dict(type="int", default=20),
        ),
        supports_check_mode=True,
    )
    params = module.params
    try:
        timeout = parse_option("timeout", params["timeout"], parse_seconds)
        interval = parse_option("interval", params["interval"], partial(parse_seconds, least=0.1))
    except ValueError as error:
        module.fail_json(msg=str(error))
    if module.check_mode or params["wait_for"] == "nothing":
        timeout = 0.0
    module.exit_json(changed=False, **wait_for(Reader(module).read, timeout, interval))


if __name__ == "__main__":
    main()
