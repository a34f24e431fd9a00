# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_approvals
short_description: Decide which events the hosts of a maintenance run may approve
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role), whose variables it reads.
  - An event may be approved if each VM that a host or the caller of the role lists in its Resources is one of the hosts
    and has prepared without a failure.
  - Returns the next state of the approvals, after the reads or the approvals of a round.
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
    description: V(read) after the reads, V(approve) after the approvals.
    type: str
    choices: [read, approve]
    required: true
  now:
    description: The Unix time.
    type: float
    required: true
  state:
    description: The last state. Empty in the first round.
    type: dict
    default: {}
  patience:
    description: Seconds for which events wait for hosts that were lost after their preparation, or a text such as 2m.
    type: raw
    default: 120
  announced:
    description:
      - Changes or events that the caller of the role has.
      - The VMs that one of them names for an event count, too.
    type: list
    elements: dict
    default: []
positional: hostvars, step, now
"""

EXAMPLES = r"""
- name: Decide which events to approve
  ansible.builtin.set_fact:
    decided: "{{ ['vm1'] | azure_imds.scheduled_events.maintenance_approvals(hostvars, 'read', 1800000000.0) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - The state. C(decisions) has one dictionary for each event of the round. C(event_id) and C(event_type) are those of
      the event. C(resources) are the VMs that any of the hosts has listed for it in this run, and those of the caller.
      C(by) is the host that approves it, C(approve) is whether it may, C(why_not) is the reason if it may not, and
      C(code) is a word for this reason.
    - C(open) has the events about which the next round decides, and C(prepare_again) the hosts that prepare before it.
      C(approved), C(refusals) and C(withheld) have the result for each event, by its ID in lower case.
  type: dict
"""

import typing as t

from ..module_utils.azure_scheduled_events.options import parse_seconds
from ..plugin_utils._maintenance.announced import listings_of, read_announced
from ..plugin_utils._maintenance.approval_attempts import State
from ..plugin_utils._maintenance.approvals import after_approvals, decide_approvals
from ..plugin_utils._maintenance.hosts import hosts_of


def maintenance_approvals(
    hosts: t.Sequence[str],
    hostvars: t.Mapping[str, t.Any],
    step: str,
    now: float,
    state: State | None = None,
    patience: float | str = 120.0,
    announced: t.Sequence[t.Any] = (),
) -> State:
    """Return the next state of the approvals."""
    known = hosts_of(hosts, hostvars)
    if state and step == "approve":
        return after_approvals(state, known, now)
    of_caller = listings_of(read_announced(announced))
    return decide_approvals(known, state or None, now, parse_seconds(patience), of_caller)


class FilterModule:
    """The filter plugin maintenance_approvals."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"maintenance_approvals": maintenance_approvals}
