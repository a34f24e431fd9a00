# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: scheduled
short_description: Test whether an event has the status Scheduled
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Is true while Azure waits for an approval or for NotBefore. The VMs still run as usual.
options:
  _input:
    description: An event in the form of M(azure_imds.scheduled_events.event_info).
    type: dict
    required: true
seealso:
  - module: azure_imds.scheduled_events.event_info
"""

EXAMPLES = r"""
- name: Leave the load balancer while there is time
  ansible.builtin.include_tasks: drain.yml
  when: maintenance.events | select('azure_imds.scheduled_events.scheduled') | list | length > 0
"""

RETURN = r"""
_value:
  description: Whether the status of the event is Scheduled.
  type: bool
"""

import typing as t

from ..plugin_utils._event_values import event_of


def scheduled(event: t.Any) -> bool:
    """Return True if the status of the event is Scheduled."""
    return event_of(event, "scheduled").status.casefold() == "scheduled"


class TestModule:
    """The test plugin scheduled."""

    def tests(self) -> dict[str, t.Callable[..., bool]]:
        """Return the tests by name."""
        return {"scheduled": scheduled}
