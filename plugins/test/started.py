# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: started
short_description: Test whether an event has the status Started
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Is true from the start of the event until its end. Preparation is too late then.
options:
  _input:
    description: An event in the form of M(azure_imds.scheduled_events.event_info).
    type: dict
    required: true
seealso:
  - module: azure_imds.scheduled_events.event_info
"""

EXAMPLES = r"""
- name: Run the emergency step
  ansible.builtin.include_tasks: emergency.yml
  when: maintenance.events | select('azure_imds.scheduled_events.started') | list | length > 0
"""

RETURN = r"""
_value:
  description: Whether the status of the event is Started.
  type: bool
"""

import typing as t

from ..plugin_utils._event_values import event_of


def started(event: t.Any) -> bool:
    """Return True if the status of the event is Started."""
    return event_of(event, "started").status.casefold() == "started"


class TestModule:
    """The test plugin started."""

    def tests(self) -> dict[str, t.Callable[..., bool]]:
        """Return the tests by name."""
        return {"started": started}
