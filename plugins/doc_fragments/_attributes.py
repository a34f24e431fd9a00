# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the modules' attributes."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments for the attributes of modules."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
  diff_mode:
    description:
      - Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  platform:
    description: Target OS/families that can be operated against.
    support: full
    platforms: posix
"""

    WINDOWS = r"""
options: {}
attributes:
  platform:
    platforms: posix, windows
    details:
      - For a Windows host the work is on the controller, and a small module in PowerShell sends each request on the
        host. The host needs neither Python nor the library C(requests), nor does the controller need this library.
  action:
    description: Has a part that runs on the controller.
    support: full
  async:
    description: Can run under C(async).
    support: partial
    details: Not for Windows hosts, because the work is on the controller.
"""

    ACTIONGROUP = r"""
options: {}
attributes:
  action_group:
    description:
      - Use C(group/azure_imds.scheduled_events.scheduled_events) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - azure_imds.scheduled_events.scheduled_events
"""

    FACTS = r"""
options: {}
attributes:
  facts:
    description: Action returns an C(ansible_facts) dictionary that will update existing host facts.
    support: full
"""

    READS = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: This module changes nothing.
  diff_mode:
    support: none
    details: This module changes nothing and has no difference to return.
"""
