# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs module maintenance_info, and fails on a result that the plan of all hosts could not use."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ..plugin_utils._maintenance.host_results import checked

_NAME = "azure_imds.scheduled_events.maintenance_info"


class ActionModule(ActionBase):
    """The action plugin maintenance_info."""

    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        result.update(checked(self._execute_module(module_name=_NAME, task_vars=task_vars), keyed=True))
        return result
