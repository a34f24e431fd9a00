# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs module event_wait, or its work on the controller for a Windows host."""

from __future__ import annotations

from ..plugin_utils._event_action import EventAction, Result


class ActionModule(EventAction):
    """The action plugin event_wait."""

    module = "event_wait"

    def _prepare_for_windows(self, params: Result, task_vars: Result) -> Result:
        from ..plugin_utils._worker_process import release_fork

        # an open connection may have threads, which a further process would not have
        if not (self._task.check_mode or self._connection.connected):
            release_fork()
        return params
