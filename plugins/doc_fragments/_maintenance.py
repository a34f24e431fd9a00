# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the maintenance modules share, for their documentation."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  notes:
    description:
      - Directory on the host for the note of a maintenance run. It has to survive a reboot, and only root or the user that runs
        the module may be able to write to it.
      - By default C(/var/lib/azure-scheduled-events/maintenance) for root, and
        C(~/.local/state/azure-scheduled-events/maintenance) for any other user. Runs with different users on the host
        therefore do not see each other's notes.
    type: path
"""

    WITHIN = r"""
options:
  within:
    description: Seconds. An event that starts later than this, by the clock of IMDS, is not due yet.
    type: float
    default: 1800
"""
