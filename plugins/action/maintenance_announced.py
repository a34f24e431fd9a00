# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the events of a host from the caller of the role maintenance, without a connection to the host."""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone

from ansible.plugins.action import ActionBase

from ..module_utils._maintenance_note import NoteFile, describe_note, run_of
from ..module_utils.azure_scheduled_events.options import parse_option, parse_seconds
from ..plugin_utils._maintenance.announced import end_of, events_of, read_announced, read_ended
from ..plugin_utils._maintenance.controller_notes import note_on_controller
from ..plugin_utils._maintenance.controller_process import this_run
from ..plugin_utils._maintenance.preparation import Preparation

_OPTIONS: dict[str, t.Any] = dict(
    step=dict(type="str", choices=["begin", "end"], required=True),
    announced=dict(type="list", elements="dict", default=[]),
    ended=dict(type="list", elements="str", default=[]),
    vm_name=dict(type="str"),
    notes=dict(type="path"),
    types=dict(type="list", elements="str"),
    within=dict(type="raw", default=1800),
    prepared=dict(type="dict"),
)

Result = t.Dict[str, t.Any]

_REMEDY = "pass the end in maintenance_announced or maintenance_ended"


class ActionModule(ActionBase):
    """The action plugin maintenance_announced."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """Return what module maintenance_info or module maintenance_wait would return."""
        result: Result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=_OPTIONS)[1]
        host = (task_vars or {})["inventory_hostname"]
        notes = note_on_controller(options["notes"], host)
        try:
            found = _begin(host, notes, options) if options["step"] == "begin" else self._end(notes, options)
        except OSError as error:
            message = f"{notes.path}: the note cannot be used: {error.strerror}; set maintenance_notes"
            found = {"failed": True, "msg": message, "outcome": "timeout", "events": []}
        except ValueError as error:
            found = {"failed": True, "msg": str(error), "outcome": "timeout", "events": []}
        result.update(found, changed=False)
        return result

    def _end(self, notes: NoteFile, options: Result) -> Result:
        note, run_id = notes.read(), this_run()["id"]
        if self._task.check_mode:
            return {"outcome": "checked", "events": []}
        if note is None:
            return {"outcome": "no_note", "events": []}
        if run_of(note) != run_id:
            message = f"{describe_note(notes.path, note)}: another run has taken over the host"
            return {"failed": True, "msg": message, "outcome": "taken_over", "events": []}
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        announced, ended = read_announced(options["announced"]), read_ended(options["ended"])
        events, pending = end_of(note, announced, ended, now, Preparation.of_fact(options["prepared"]))
        # a later run has to know which events are over, and for which the host is prepared
        notes.update(run_id, events)
        if not pending:
            return {"outcome": "over", "events": events}
        message = f"the host stays prepared until a run with the end of {pending}; {_REMEDY}"
        return {"outcome": "pending", "events": events, "msg": message}


def _begin(host: str, notes: NoteFile, options: Result) -> Result:
    return events_of(
        host,
        options["vm_name"],
        read_announced(options["announced"]),
        read_ended(options["ended"]),
        options["types"],
        parse_option("within", options["within"], parse_seconds),
        notes.read(),
        datetime.now(timezone.utc),
    )
