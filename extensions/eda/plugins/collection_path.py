# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the plugins import their collection by its name: ansible-rulebook runs a plugin as a single file."""

from __future__ import annotations

import os
import sys
from importlib import import_module

_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))


def make_importable() -> None:
    """Add the folder with ansible_collections to the search path of Python.

    The package `ansible` has a folder ansible_collections too, which may hide this one; therefore the path of the
    imported package gets this folder in any case.
    """
    if _ROOT not in sys.path:
        sys.path.append(_ROOT)
    names = ("ansible_collections", "ansible_collections.azure_imds")
    for number, name in enumerate(names, start=1):
        folder = os.path.join(_ROOT, *("ansible_collections", "azure_imds")[:number])
        found = import_module(name).__path__
        if folder not in list(found):
            found.insert(0, folder) if isinstance(found, list) else found.append(folder)


make_importable()
