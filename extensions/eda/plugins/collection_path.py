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
    """Put the folder with ansible_collections first in the search path of Python.

    The package `ansible` has a folder ansible_collections too. It hides all others if it is an ordinary package;
    therefore this folder becomes a part of that package.
    """
    if _ROOT not in sys.path:
        sys.path.insert(0, _ROOT)
    for names in (("ansible_collections",), ("ansible_collections", "azure_imds")):
        folder = os.path.join(_ROOT, *names)
        parts = import_module(".".join(names)).__path__
        if isinstance(parts, list) and folder not in parts:
            parts.insert(0, folder)


make_importable()
