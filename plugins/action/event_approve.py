# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs module event_approve, or its work on the controller for a Windows host."""

from __future__ import annotations

from ..plugin_utils._event_action import EventAction, Result


class ActionModule(EventAction):
    """The action plugin event_approve."""

    module = "event_approve"

    def _prepare_for_windows(self, params: Result, task_vars: Result) -> Result:
        from ..plugin_utils._windows_hosts.approval_files import policy_of_host, receipts_of_host

        host = self._task.delegate_to or task_vars["inventory_hostname"]
        prepared = dict(params, receipts=receipts_of_host(params["receipts"], host))
        if params["policy_file"] is not None:
            # not the parsed value, in which the controller's variables and home directory are filled in
            path = str(self._task.args["policy_file"])
            prepared.update(policy=policy_of_host(path, self._connection.fetch_file), policy_file=None)
        return prepared
