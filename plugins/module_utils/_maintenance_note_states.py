# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of the note of a maintenance run, as module maintenance_note and the controller write them."""

from __future__ import annotations

import typing as t

from ._maintenance_note import NoteFile, NoteHeld, describe_note, run_of
from .azure_scheduled_events.options import parse_option, parse_seconds

REMEDY = "wait until that run has ended, or set maintenance_take_over if it is known to have ended"

NOTE_OPTIONS: dict[str, t.Any] = dict(
    notes=dict(type="path"),
    state=dict(type="str", choices=["present", "left", "absent"], default="present"),
    events=dict(type="list", elements="dict", default=[]),
    expires=dict(type="raw", default=3600),
    take_over=dict(type="bool", default=False),
    on_controller=dict(type="bool", default=False),
    reason=dict(type="str", default=""),
    run=dict(type="dict"),
    replaces=dict(type="str"),
)

Result = t.Dict[str, t.Any]


def set_note(notes: NoteFile, options: t.Mapping[str, t.Any], check_mode: bool) -> Result:
    """Write, leave or remove the note, and return the result of the module.

    The result has ``failed`` if the note belongs to another run or cannot be written, or if an option cannot be used.
    ``options`` are those of module maintenance_note.
    """
    try:
        result = (
            _write(notes, options, check_mode) if options["state"] == "present" else _end(notes, options, check_mode)
        )
    except OSError as error:
        result = _failure(
            f"{notes.path}: the note cannot be written: {error.strerror}; use become or set maintenance_notes"
        )
    except ValueError as error:
        result = _failure(str(error))
    return dict(result, file=notes.path)


def _write(notes: NoteFile, options: t.Mapping[str, t.Any], check_mode: bool) -> Result:
    try:
        note = notes.claim(
            options["run"],
            options["events"],
            parse_option("expires", options["expires"], parse_seconds),
            options["replaces"],
            options["take_over"],
            write=not check_mode,
        )
    except NoteHeld as held:
        return _failure(f"{held}; {REMEDY}", found=held.note)
    return dict(changed=True, note=note)


def _end(notes: NoteFile, options: t.Mapping[str, t.Any], check_mode: bool) -> Result:
    run_id = options["run"]["id"]
    found = notes.read()
    is_own = found is not None and run_of(found) == run_id
    other = found if found is not None and not is_own else None
    if is_own and not check_mode:
        other = notes.leave(run_id, options["reason"]) if options["state"] == "left" else notes.remove(run_id)
    if check_mode:
        # this run has written no note in check mode; it would have replaced the one that is there
        return dict(changed=found is not None)
    if other is not None:
        return _failure(f"{describe_note(notes.path, other)}: another run has taken over the host", found=other)
    return dict(changed=is_own)


def _failure(message: str, **result: t.Any) -> Result:
    return dict(result, changed=False, failed=True, msg=message)
