# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of module maintenance_note: the identity of the run, and whether another run has ended."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._controller_process import has_ended, this_run


class ActionModule(ActionBase):
    """The action plugin maintenance_note."""

    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module, and once more if the run of the note that it found has ended."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        options = dict(self._task.args, run=this_run())
        written = self._module(options, task_vars)
        found = written.get("found") if options.get("state", "present") == "present" else None
        if found and "run" in found and has_ended(found["run"]):
            written = self._module(dict(options, replaces=found["run"]["id"]), task_vars)
        result.update(written)
        return result

    def _module(self, options: dict[str, t.Any], task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        name = "azure_imds.scheduled_events.maintenance_note"
        written: dict[str, t.Any] = self._execute_module(module_name=name, module_args=options, task_vars=task_vars)
        return written
