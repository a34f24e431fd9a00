# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Finds the hooks: the executables of hooks.d/STAGE/, in the order of their names."""

from __future__ import annotations

import os
import re
import stat
from enum import Enum
from typing import Mapping, NamedTuple, Sequence

from hook_runner.config.settings import HookSettings, Settings
from hook_runner.config.values import HOOK_NAME
from hook_runner.permissions import nearest_existing, permission_problem, printable_path
from hook_runner.records import STAGES

# hidden files, README files, files that an operator has disabled, and backups of editors and package managers
_IGNORED = re.compile(
    r"\..*|README.*|.*~|.*\.dpkg-.*|.*\.(?:bak|orig|swp|disabled|rpmnew|rpmsave|rpmorig|ucf-dist|ucf-new|ucf-old)",
    re.DOTALL,
)

# the name that represents all hooks of a refused folder
WHOLE_DIRECTORY = "."


class Hook(NamedTuple):
    """One hook of one stage.

    Attributes:
        stage: one of STAGES.
        name: file name; WHOLE_DIRECTORY for all hooks of a refused folder.
        path: the file; links in it are not resolved.
        settings: its limits and its reaction to a failure.
        problem: why it is not run, or None. A refused hook counts as failed.
    """

    stage: str
    name: str
    path: str
    settings: HookSettings
    problem: str | None


# by stage, in the order of their names
Hooks = Mapping[str, Sequence[Hook]]


class SkipReason(Enum):
    """Why a file of a stage is not a hook."""

    IGNORED = "its name is that of a hidden file, a README, a disabled hook or a backup"
    NAME = (
        "its name has characters other than letters, digits, dot, dash and underscore,"
        " or does not begin with a letter or digit"
    )
    NOT_A_FILE = "it is not a file"
    NOT_EXECUTABLE = "it is not executable"


class Skipped(NamedTuple):
    """A file of a stage that is not a hook."""

    path: str
    reason: SkipReason

    @property
    def text(self) -> str:
        """One line for the log."""
        return f"{printable_path(self.path)} is not a hook: {self.reason.value}"


def discover_hooks(directory: str, settings: Settings) -> tuple[dict[str, list[Hook]], list[Skipped]]:
    """Find the hooks of all stages in the order of their names, and the files that are not hooks.

    1. `directory` has one folder for each stage; a missing folder has no hooks.
    2. A folder that users who are not trusted could change or have removed, or that cannot be listed, has one hook,
       WHOLE_DIRECTORY, which is refused.
    3. Each file is a hook, or is skipped. A hook that others could change is refused.
    """
    hooks: dict[str, list[Hook]] = {stage: [] for stage in STAGES}
    skipped: list[Skipped] = []
    for stage, found in hooks.items():
        folder = os.path.join(directory, stage)
        names, refusal = _names(folder, directory)
        if refusal is not None:
            found.append(Hook(stage, WHOLE_DIRECTORY, folder, settings.hook(stage, WHOLE_DIRECTORY), refusal))
        for name in names:
            path = os.path.join(folder, name)
            reason = _skip_reason(name, path)
            if reason is None:
                problem = permission_problem(path, directory)
                found.append(Hook(stage, name, path, settings.hook(stage, name), problem))
            else:
                skipped.append(Skipped(path, reason))
    return hooks, skipped


def _names(folder: str, directory: str) -> tuple[list[str], str | None]:
    """Return the names in the folder of a stage; or none, and why it is refused."""
    there = nearest_existing(folder)
    refusal = permission_problem(there, directory if there == folder else None)
    if refusal is not None or there != folder:
        # the whole folder: a user who can write it, or one above it, may have removed hooks
        return [], refusal
    try:
        # by bytes: the order must be the same in every locale
        return sorted(os.listdir(folder), key=os.fsencode), None
    except OSError as error:
        return [], f"{printable_path(folder)} cannot be listed: {error.strerror}"


def _skip_reason(name: str, path: str) -> SkipReason | None:
    """Return why a file is not a hook, or None. A file that cannot be examined counts as a hook, which is refused."""
    if _IGNORED.fullmatch(name):
        return SkipReason.IGNORED
    if not HOOK_NAME.fullmatch(name):
        return SkipReason.NAME
    try:
        info = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(info.st_mode):
        return SkipReason.NOT_A_FILE
    return None if info.st_mode & 0o111 else SkipReason.NOT_EXECUTABLE
