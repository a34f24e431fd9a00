# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ready_hook_runs
short_description: Return the runs of ready hooks on a host
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.ready_hooks#role).
options:
  _input:
    description: The value of C(ready_hooks_list).
    type: list
    elements: dict
    required: true
  events:
    description: If there are any, only the hooks that prepare for one of these events are returned.
    type: list
    elements: dict
    default: []
positional: events
"""

EXAMPLES = r"""
- name: Show the time limits of the hooks
  ansible.builtin.debug:
    msg: "{{ ready_hooks_list | azure_imds.scheduled_events.ready_hook_runs | map(attribute='seconds') }}"
"""

RETURN = r"""
_value:
  description: >-
    One dictionary for each hook. C(use) and C(name) are its kind and its name, C(options) its options, C(seconds) its
    time limit, and C(types) the types of events for which it prepares.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._ready_hooks import runs, runs_for


def ready_hook_runs(entries: t.Any, events: t.Sequence[t.Mapping[str, t.Any]] | None = None) -> list[dict[str, t.Any]]:
    """Return the runs of a list of ready hooks."""
    try:
        return runs_for(runs(entries, "ready_hooks_list"), events or ())
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    """The filter plugin ready_hook_runs."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"ready_hook_runs": ready_hook_runs}
