# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: impactful
short_description: Test whether an event interrupts its VMs noticeably
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Is false for a Freeze whose expected duration is known and shorter than O(freeze_limit).
  - Is false for a type that only advises, such as SpotRebalanceRecommendation.
  - Is true for all other types, also for those that are unknown.
options:
  _input:
    description: An event in the form of M(azure_imds.scheduled_events.event_info).
    type: dict
    required: true
  freeze_limit:
    description: A Freeze of that many seconds or more counts as an interruption. V(0) makes every Freeze count.
    type: float
    default: 9
positional: freeze_limit
notes:
  - The default of O(freeze_limit) is that of Microsoft's sample, which approves shorter freezes without preparation.
seealso:
  - module: azure_imds.scheduled_events.event_info
"""

EXAMPLES = r"""
- name: Drain before events that interrupt the VM
  ansible.builtin.include_tasks: drain.yml
  when: maintenance.events | select('azure_imds.scheduled_events.impactful') | list | length > 0

- name: Show an event that takes 30 seconds or more
  ansible.builtin.debug:
    var: event
  when: event is azure_imds.scheduled_events.impactful(30)
"""

RETURN = r"""
_value:
  description: Whether the event interrupts its VMs noticeably.
  type: bool
"""

import math
import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils.azure_scheduled_events.event_types import advises
from ..plugin_utils._event_values import event_of


def impactful(event: t.Any, freeze_limit: float = 9) -> bool:
    """Return True unless the event only advises, or is a Freeze that is known to be shorter than the limit."""
    is_number = isinstance(freeze_limit, (int, float)) and not isinstance(freeze_limit, bool)
    if not is_number or math.isnan(freeze_limit) or freeze_limit < 0:
        raise AnsibleFilterError(f"impactful: freeze_limit is not a number from 0: {freeze_limit!r}; give seconds")
    read = event_of(event, "impactful")
    if advises(read.event_type):
        return False
    if read.event_type.casefold() != "freeze" or read.duration is None:
        return True
    return read.duration.total_seconds() >= freeze_limit


class TestModule:
    """The test plugin impactful."""

    def tests(self) -> dict[str, t.Callable[..., bool]]:
        """Return the tests by name."""
        return {"impactful": impactful}
