# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugins of the event modules: the module on POSIX hosts, its work on the controller for Windows."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

Result = t.Dict[str, t.Any]

_COLLECTION = "azure_imds.scheduled_events."


class EventAction(ActionBase):
    """The action plugin of an event module, whose name is ``module``."""

    _supports_async = True
    _supports_check_mode = True
    module: str

    def run(self, tmp: None = None, task_vars: Result | None = None) -> Result:
        """Run the module on the host, or its work here if the host is a Windows host."""
        result: Result = super().run(tmp, task_vars)
        if getattr(self._connection._shell, "_IS_WINDOWS", False):
            result.update(self._work_for_windows(task_vars or {}))
            return result
        wrap_async = self._task.async_val and not self._connection.has_native_async
        result.update(
            self._execute_module(module_name=_COLLECTION + self.module, task_vars=task_vars, wrap_async=wrap_async)
        )
        return result

    def _work_for_windows(self, task_vars: Result) -> Result:
        # a task of a POSIX host needs none of these
        from ..module_utils._event_tasks.event_task import InvalidOptions, failure
        from ._windows_hosts.event_work import EVENT_TASKS, work_on_controller
        from ._windows_hosts.host_module import HostModule

        if self._task.async_val:
            return {
                "failed": True,
                "msg": f"async: {self.module} works on the controller for a Windows host; remove async from the task",
            }
        task = EVENT_TASKS[self.module]
        params = self.validate_argument_spec(argument_spec=task.argument_spec(), **task.rules)[1]
        given: Result = {"invocation": {"module_args": params}}
        try:
            params = self._prepare_for_windows(params, task_vars)
        except InvalidOptions as error:
            return dict(given, **failure(error))

        def execute(options: Result) -> Result:
            found: Result = self._execute_module(
                module_name=_COLLECTION + "imds_exchange", module_args=options, task_vars=task_vars
            )
            return found

        def reset() -> None:
            # the temporary directory of a lost connection may no longer exist
            self._connection._shell.tmpdir = None
            self._connection.reset()

        return dict(given, **work_on_controller(task, params, bool(self._task.check_mode), HostModule(execute, reset)))

    def _prepare_for_windows(self, params: Result, task_vars: Result) -> Result:
        """Return the options for the work on the controller; raise InvalidOptions."""
        return params
