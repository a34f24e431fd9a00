# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The note of a maintenance run, as the options of module maintenance_note set it."""

from __future__ import annotations

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import NoteFile
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note_states import set_note

OPTIONS = {"state": "present", "run": {"id": "here-1"}, "events": [], "replaces": None, "take_over": False}


def test_duration_that_cannot_be_used_is_named_and_writes_no_note(tmp_path):
    notes = NoteFile(str(tmp_path))
    result = set_note(notes, dict(OPTIONS, expires="1 hour"), check_mode=False)
    assert result["failed"] and result["msg"].startswith("expires: expected seconds") and notes.read() is None
