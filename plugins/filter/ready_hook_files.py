# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ready_hook_files
short_description: Return the files with which the hook runner calls ready hooks
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.hook_runner#role).
  - Entry number i of the list prepares with number 20 + i and recovers with number 80 - i. Recovery is therefore in
    reverse order.
options:
  _input:
    description: The value of C(hook_runner_ready_hooks).
    type: list
    elements: dict
    required: true
  python:
    description: The Python that runs the ready hooks. If empty, each hook finds one.
    type: str
    default: ""
positional: python
"""

EXAMPLES = r"""
- name: Show the names of the hooks
  ansible.builtin.debug:
    msg: "{{ hook_runner_ready_hooks | azure_imds.scheduled_events.ready_hook_files | map(attribute='name') }}"
"""

RETURN = r"""
_value:
  description: >-
    Hooks in the form of C(hook_runner_hooks), with C(stage), C(name), C(content) and, where an entry has it,
    C(settings).
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._ready_hooks import hook_files


def ready_hook_files(entries: t.Any, python: str = "") -> list[dict[str, t.Any]]:
    """Return the hooks of the hook runner for a list of ready hooks."""
    try:
        return hook_files(entries, "hook_runner_ready_hooks", python)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    """The filter plugin ready_hook_files."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"ready_hook_files": ready_hook_files}
