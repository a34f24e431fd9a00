# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the task files and roles of the caller."""

from __future__ import annotations

import os
import typing as t

from ansible import context


def names_a_file(name: str) -> bool:
    """Return True if the name is that of a task file, False if it is that of a role."""
    return name.endswith((".yml", ".yaml"))


def caller_folders(playbook_dir: str) -> list[str]:
    """Return the folders of the caller, in the order in which they are searched.

    These are the folder of the playbook that runs (a folder of this collection for its own playbooks, also when
    imported), the folder of each playbook of the command line, and the current directory.
    """
    given = [os.path.dirname(os.path.abspath(name)) for name in context.CLIARGS.get("args", ()) if os.path.isfile(name)]
    return list(dict.fromkeys([playbook_dir, *given, os.getcwd()]))


def find_file(name: str, folders: t.Sequence[str]) -> tuple[str, list[str]]:
    """Return the path of a task file, "" if it does not exist, and the searched paths."""
    places = [os.path.normpath(os.path.join(folder, os.path.expanduser(name))) for folder in folders]
    return _first(os.path.isfile, list(dict.fromkeys(places)))


def find_role(name: str, folders: t.Sequence[str]) -> tuple[str, list[str]]:
    """Return the path of a role beside a playbook of the caller, "" if it does not exist, and the searched paths."""
    places = [os.path.normpath(os.path.join(folder, "roles", name)) for folder in folders]
    return _first(os.path.isdir, list(dict.fromkeys(places)))


def _first(exists: t.Callable[[str], bool], places: list[str]) -> tuple[str, list[str]]:
    return next(filter(exists, places), ""), places
