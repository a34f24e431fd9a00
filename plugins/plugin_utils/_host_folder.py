# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders on the controller, one for each host."""

from __future__ import annotations

import os
import urllib.parse

_HOSTS = "hosts"


def folder_of_host(folder: str, host: str) -> str:
    """Return the path of the folder of a host, whose name is that in the inventory.

    ``folder`` is that for all hosts; "~" is the home directory of the user.
    """
    name = urllib.parse.quote(host, safe="")
    # no host may name the folder itself or its parent
    name = name.replace(".", "%2E", 1) if name.startswith(".") else name
    return os.path.join(os.path.expanduser(folder), _HOSTS, name)
