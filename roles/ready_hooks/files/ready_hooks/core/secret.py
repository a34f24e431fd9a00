# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Reads a secret from a file that only its owner can read."""

from __future__ import annotations

import os
import stat

from ready_hooks.core.errors import HookError

_MOST_BYTES = 64 * 1024


def secret_problem(path: str) -> str | None:
    """Return why the file is not usable for a secret, or None."""
    try:
        info = os.stat(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if not stat.S_ISREG(info.st_mode):
        return "it is not a file"
    if info.st_uid not in (0, os.geteuid()):
        return "it belongs to another user"
    if info.st_mode & 0o077:
        return f"other users can read or write it (mode {stat.S_IMODE(info.st_mode):04o})"
    return None


def read_secret(path: str) -> str:
    """Return the content of the file, without white space around it. Raises HookError."""
    problem = secret_problem(path)
    if problem is not None:
        raise HookError(path, f"the secret is not used: {problem}", "chown it to root, and chmod it to 0600")
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read(_MOST_BYTES).strip()
    except (OSError, ValueError) as error:
        raise HookError(path, f"the secret cannot be read: {error}") from None
    if not content:
        raise HookError(path, "the file of the secret is empty")
    return content
