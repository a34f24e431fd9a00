# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: time_left
short_description: Return the seconds until an event may start
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Returns the whole seconds until NotBefore. An approval lets the event start earlier.
  - The result is V(0) for an event that is Started, for one whose NotBefore has passed, and for one without NotBefore,
    which may start at any moment. It is never negative.
options:
  _input:
    description: An event in the form of M(azure_imds.scheduled_events.event_info).
    type: dict
    required: true
  now:
    description:
      - The present time in ISO 8601; without a zone it is UTC.
      - The default is the clock of the controller.
    type: str
positional: now
seealso:
  - module: azure_imds.scheduled_events.event_info
"""

EXAMPLES = r"""
- name: Drain quickly if there is little time
  ansible.builtin.include_tasks: drain_quickly.yml
  when: maintenance.events | map('azure_imds.scheduled_events.time_left') | min < 120
"""

RETURN = r"""
_value:
  description: Seconds, V(0) or more.
  type: int
"""

import typing as t
from datetime import datetime, timezone

from ansible.errors import AnsibleFilterError

from ..module_utils.azure_scheduled_events.timestamps import parse_time
from ..plugin_utils._event_values import event_of


def time_left(event: t.Any, now: str | None = None) -> int:
    """Return the whole seconds until the event may start."""
    moment = datetime.now(timezone.utc) if now is None else _time(now)
    return int(event_of(event, "time_left").seconds_left(moment))


def _time(text: t.Any) -> datetime:
    moment = parse_time(text) if isinstance(text, str) else None
    if moment is None:
        raise AnsibleFilterError(f"time_left: now is not a time: {text!r}; write it as 2026-11-21T10:15:00Z")
    return moment


class FilterModule:
    """The filter plugin time_left."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"time_left": time_left}
