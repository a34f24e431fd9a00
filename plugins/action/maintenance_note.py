# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of module maintenance_note: the identity of the run, and whether another run has ended."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ..module_utils._maintenance_note_states import NOTE_OPTIONS, set_note
from ..plugin_utils._maintenance.controller_notes import note_on_controller
from ..plugin_utils._maintenance.controller_process import has_ended, this_run
from ..plugin_utils._maintenance.host_results import checked


class ActionModule(ActionBase):
    """The action plugin maintenance_note."""

    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module, and once more if the run of the note that it found has ended."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=NOTE_OPTIONS)[1]
        options["run"] = this_run()
        written = self._set(options, task_vars)
        found = written.get("found") if options["state"] == "present" else None
        # that of a damaged note has none, and a host may return anything
        run = found.get("run") if isinstance(found, dict) else None
        if isinstance(run, dict) and has_ended(run):
            written = self._set(dict(options, replaces=run.get("id")), task_vars)
        result.update(written)
        return result

    def _set(self, options: dict[str, t.Any], task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        """Set the note on the host, or that of the host on the controller."""
        if options["on_controller"]:
            host = (task_vars or {})["inventory_hostname"]
            return set_note(note_on_controller(options["notes"], host), options, bool(self._task.check_mode))
        name = "azure_imds.scheduled_events.maintenance_note"
        given = {key: value for key, value in options.items() if value is not None}
        return checked(self._execute_module(module_name=name, module_args=given, task_vars=task_vars))
