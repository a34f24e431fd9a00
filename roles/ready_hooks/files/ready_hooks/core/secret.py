# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Reads a secret from a file that only its owner can read and replace."""

from __future__ import annotations

import os
import stat

from ready_hooks.core.errors import HookError
from ready_hooks.core.ownership import change_problem

_MOST_BYTES = 64 * 1024


def secret_problem(path: str) -> str | None:
    """Return why the file is not usable for a secret, or None."""
    try:
        return change_problem(path) or _problem(os.stat(path))
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def read_secret(path: str) -> str:
    """Return the content of the file, without white space around it. Raises HookError."""
    try:
        # O_NONBLOCK: to open a named pipe would wait for its writer
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
            problem = change_problem(path) or _problem(os.fstat(file.fileno()))
            content = "" if problem else file.read(_MOST_BYTES).strip()
    except OSError as error:
        problem, content = f"it cannot be read: {error.strerror}", ""
    except ValueError:
        problem, content = "it is not a text in UTF-8", ""
    if problem is not None:
        raise HookError(
            path, f"the secret is not used: {problem}", "chown it to root, in a folder of root, and chmod it to 0600"
        )
    if not content:
        raise HookError(path, "the file of the secret is empty")
    return content


def _problem(info: os.stat_result) -> str | None:
    if not stat.S_ISREG(info.st_mode):
        return "it is not a file"
    if info.st_mode & 0o077:
        return f"other users can read it (mode {stat.S_IMODE(info.st_mode):04o})"
    return None
