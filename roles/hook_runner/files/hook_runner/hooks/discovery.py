# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Finds the hooks: the executables of hooks.d/STAGE/, in the order of their names."""

from __future__ import annotations

import os
import stat
from enum import Enum
from typing import Mapping, NamedTuple, Sequence

from hook_runner.config.settings import HookSettings, Settings
from hook_runner.config.values import HOOK_NAME
from hook_runner.permissions import permission_problem, printable_path
from hook_runner.records import STAGES

# backup files of editors and package managers, and hooks that an operator has disabled
_BACKUP_SUFFIXES = (
    "~",
    ".bak",
    ".orig",
    ".swp",
    ".disabled",
    ".rpmnew",
    ".rpmsave",
    ".rpmorig",
    ".ucf-dist",
    ".ucf-new",
    ".ucf-old",
)
_DPKG = (".dpkg-",)

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

    HIDDEN = "its name begins with a dot"
    README = "its name begins with README"
    LEFTOVER = "its name ends like that of a backup or of a package manager's file"
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


def discover_hooks(
    directory: str, settings: Settings, owners: frozenset[int]
) -> tuple[dict[str, tuple[Hook, ...]], tuple[Skipped, ...]]:
    """Find the hooks of all stages in the order of their names, and the files that are not hooks.

    `directory` has one folder for each stage; a missing one has no hooks. `owners` are the uids that may own
    hooks.
    """
    skipped: list[Skipped] = []
    return {stage: tuple(_of_stage(directory, stage, settings, owners, skipped)) for stage in STAGES}, tuple(skipped)


def _of_stage(
    directory: str, stage: str, settings: Settings, owners: frozenset[int], skipped: list[Skipped]
) -> list[Hook]:
    """Return the hooks of a stage, and add the files that are not hooks to `skipped`.

    1. A missing folder has no hooks.
    2. A folder that other users could change, or that cannot be listed, has one hook, WHOLE_DIRECTORY, which is
       refused.
    3. Each file is a hook, or is skipped. A hook that other users could change is refused.
    """
    folder = os.path.join(directory, stage)
    if not os.path.lexists(folder):
        return []
    refusal = permission_problem(folder, directory, owners)
    try:
        # by bytes: the order must be the same in every locale
        names = sorted(os.listdir(folder), key=os.fsencode)
    except OSError as error:
        refusal = refusal or f"{printable_path(folder)} cannot be listed: {error.strerror}"
    if refusal is not None:
        # the whole folder: a user who can write it may have removed hooks from it
        return [Hook(stage, WHOLE_DIRECTORY, folder, settings.hook(stage, WHOLE_DIRECTORY), refusal)]
    found: list[Hook] = []
    for name in names:
        path = os.path.join(folder, name)
        reason = _skip_reason(name, path)
        if reason is None:
            found.append(
                Hook(stage, name, path, settings.hook(stage, name), permission_problem(path, directory, owners))
            )
        else:
            skipped.append(Skipped(path, reason))
    return found


def _skip_reason(name: str, path: str) -> SkipReason | None:
    """Return why a file is not a hook, or None. A file that cannot be examined counts as a hook, which is refused."""
    if name.startswith("."):
        return SkipReason.HIDDEN
    if name.startswith("README"):
        return SkipReason.README
    if name.endswith(_BACKUP_SUFFIXES) or any(part in name for part in _DPKG):
        return SkipReason.LEFTOVER
    if not HOOK_NAME.fullmatch(name):
        return SkipReason.NAME
    try:
        info = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(info.st_mode):
        return SkipReason.NOT_A_FILE
    return None if info.st_mode & 0o111 else SkipReason.NOT_EXECUTABLE
