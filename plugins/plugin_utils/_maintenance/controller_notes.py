# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes on the controller, of hosts that may be down or may not run modules in Python."""

from __future__ import annotations

from ...module_utils._maintenance_note import NoteFile, default_folder
from .._host_folder import folder_of_host


def note_on_controller(folder: str | None, host: str) -> NoteFile:
    """Return the note of a host, whose name is that in the inventory.

    ``folder`` is for the notes of all hosts; None for the default folder of the user.
    """
    return NoteFile(folder_of_host(folder or default_folder(), host))
