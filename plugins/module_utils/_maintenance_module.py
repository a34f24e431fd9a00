# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the maintenance modules share."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ._maintenance_note import NoteFile, default_folder

NOTES: dict[str, t.Any] = dict(type="path")
WITHIN: dict[str, t.Any] = dict(type="raw", default=1800)


def note_file(module: AnsibleModule) -> NoteFile:
    """Return the note of the host, in the folder that the option ``notes`` names."""
    return NoteFile(module.params["notes"] or default_folder())
