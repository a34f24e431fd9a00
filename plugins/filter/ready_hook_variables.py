# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ready_hook_variables
short_description: Return the variables EVENT_* and HOOK_SECONDS of a ready hook
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.ready_hooks#role).
options:
  _input:
    description: >-
      The events, in the form of M(azure_imds.scheduled_events.event_info) or
      M(azure_imds.scheduled_events.maintenance_wait). The variables are those of the most urgent one, if O(stage) is
      V(recover) those of the most severe one. Only events of O(types) count; if none has such a type, all count.
    type: list
    elements: dict
    required: true
  stage:
    description: V(prepare) or V(recover).
    type: str
    required: true
  timeout:
    description: >-
      The time limit of the hook in seconds. C(HOOK_SECONDS) is at most the time until C(not_before) of the most urgent
      of all events, less 5 seconds.
    type: float
    required: true
  resource:
    description: Name of this VM in Azure.
    type: str
    default: ""
  starts_at:
    description: >-
      C(not_before) of events as the clock of the controller shows it, in ISO 8601 by ID in lower case. Without it that
      clock has to be right.
    type: dict
    default: {}
  types:
    description: The types of events for which the hook prepares. Without it all but those that only advise.
    type: list
    elements: str
    default: []
positional: stage, timeout, resource, starts_at, types
"""

EXAMPLES = r"""
- name: Show the variables of a hook
  ansible.builtin.debug:
    msg: "{{ maintenance_events | azure_imds.scheduled_events.ready_hook_variables('prepare', 300) }}"
"""

RETURN = r"""
_value:
  description: The variables by name. Unknown values are empty.
  type: dict
"""

import typing as t
from datetime import datetime, timezone

from ..plugin_utils._ready_hooks import event_variables


def ready_hook_variables(
    events: t.Sequence[t.Mapping[str, t.Any]],
    stage: str,
    timeout: float,
    resource: str | None = "",
    starts_at: t.Mapping[str, str] | None = None,
    types: t.Sequence[str] = (),
) -> dict[str, str]:
    """Return the variables of a hook for one of the events."""
    now = datetime.now(timezone.utc)
    return event_variables(events or (), types, stage, resource or "", timeout, starts_at or {}, now)


class FilterModule:
    """The filter plugin ready_hook_variables."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"ready_hook_variables": ready_hook_variables}
