# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs module hook_runner_info, without one of Ansible's forks while it waits."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ..plugin_utils._worker_process import release_fork

_NAME = "azure_imds.scheduled_events.hook_runner_info"


class ActionModule(ActionBase):
    """The action plugin hook_runner_info."""

    _supports_async = True
    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        is_async = bool(self._task.async_val)
        if self._task.args.get("wait_for", "nothing") != "nothing" and not (self._task.check_mode or is_async):
            release_fork()
        result.update(
            self._execute_module(
                module_name=_NAME, module_args=self._task.args, task_vars=task_vars, wrap_async=is_async
            )
        )
        return result
