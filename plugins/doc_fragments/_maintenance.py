# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that the maintenance modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments for the options of the maintenance modules."""

    DOCUMENTATION = r"""
options:
  notes:
    description:
      - Directory on the host for the note of a maintenance run. It has to survive a reboot, and only root or the user
        that runs the module may have write access.
      - The default is C(/var/lib/azure-scheduled-events/maintenance) for root, and
        C(~/.local/state/azure-scheduled-events/maintenance) for other users. Runs with different users on the host
        therefore do not share notes.
    type: path
"""

    WITHIN = r"""
options:
  within:
    description: Seconds by the clock of IMDS. An event that starts later than this is not due yet.
    type: raw
    default: 1800
"""
