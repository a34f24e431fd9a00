# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_coordination
short_description: Decide about the events of hosts whose hook runners prepare and recover
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role), whose variables it reads.
  - Returns the next state of a run of the entry point C(coordinate), after the reads or the approvals of a round.
options:
  _input:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of the hosts.
    type: dict
    required: true
  step:
    description: V(first) for the state before the first round, V(read) after the reads, V(approve) after the approvals.
    type: str
    choices: [first, read, approve]
    required: true
  now:
    description: The Unix time.
    type: float
    required: true
  state:
    description: The last state.
    type: dict
  patience:
    description: Seconds for the whole run.
    type: raw
    default: 3600
  within:
    description: Seconds. An event that starts later is left to a later run.
    type: raw
    default: 1800
  types:
    description: Types of events to handle. By default all that do not only advise.
    type: list
    elements: str
    default: []
  check_mode:
    description: Whether to end after the first decision.
    type: bool
    default: false
  announced:
    description:
      - With V(first), changes or events that the caller of the role has.
      - The VMs that one of them names for an event count, too.
    type: list
    elements: dict
    default: []
positional: hostvars, step, now
"""

EXAMPLES = r"""
- name: Decide which events may be approved
  ansible.builtin.set_fact:
    maintenance__coordination: >-
      {{ ansible_play_hosts_all | azure_imds.scheduled_events.maintenance_coordination(hostvars, 'read', 1800000000.0,
         state=maintenance__coordination) }}
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - The state. C(decisions) are the events to approve now, with C(by), the host that approves. C(read) has the options
      of the next read by host, C(pause) the seconds before it, and C(over) is true if none follows.
  type: dict
"""

import typing as t

from ..module_utils.azure_scheduled_events.options import parse_seconds
from ..plugin_utils._maintenance.announced import listings_of, read_announced
from ..plugin_utils._maintenance.approval_attempts import State, with_approvals
from ..plugin_utils._maintenance.coordination import Limits, first_state, next_state
from ..plugin_utils._maintenance.hosts import hosts_of


def maintenance_coordination(
    hosts: t.Sequence[str],
    hostvars: t.Mapping[str, t.Any],
    step: str,
    now: float,
    state: State | None = None,
    patience: t.Any = 3600,
    within: t.Any = 1800,
    types: t.Iterable[str] = (),
    check_mode: bool = False,
    announced: t.Sequence[t.Any] = (),
) -> State:
    """Return the next state of the run."""
    if step == "first" or state is None:
        arm_vms = {host.name: host.arm_vm for host in hosts_of(hosts, hostvars)}
        return first_state(hosts, now, arm_vms, listings_of(read_announced(announced)))
    if step == "approve":
        return with_approvals(state, hosts_of(hosts, hostvars), now)
    limits = Limits(parse_seconds(patience), parse_seconds(within), frozenset(types), bool(check_mode))
    results = {name: hostvars[name].get("maintenance__hook_runner") or {} for name in hosts if name in state["read"]}
    return next_state(state, results, now, limits)


class FilterModule:
    """The filter plugin maintenance_coordination."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"maintenance_coordination": maintenance_coordination}
