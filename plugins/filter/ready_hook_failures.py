# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ready_hook_failures
short_description: Return the message about ready hooks that failed
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.ready_hooks#role).
options:
  _input:
    description: The results of the task that ran the hooks.
    type: list
    elements: dict
    required: true
  stage:
    description: V(prepare) or V(recover).
    type: str
    required: true
positional: stage
"""

EXAMPLES = r"""
- name: Fail with the messages of the hooks
  ansible.builtin.fail:
    msg: "{{ ran.results | azure_imds.scheduled_events.ready_hook_failures('recover') }}"
"""

RETURN = r"""
_value:
  description: One clause for each hook that failed.
  type: str
"""

import typing as t

from ..plugin_utils._ready_hooks import failures


def ready_hook_failures(results: t.Sequence[t.Mapping[str, t.Any]], stage: str) -> str:
    """Return the message about the hooks that failed."""
    return failures(results, stage)


class FilterModule:
    """The filter plugin ready_hook_failures."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"ready_hook_failures": ready_hook_failures}
