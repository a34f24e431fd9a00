# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Allows one daemon at a time: two would prepare and approve the same events."""

from __future__ import annotations

import os

from azure_scheduled_events import durable_file


class AlreadyRunning(Exception):
    """Another daemon works in the same directory."""


def lock_instance(directory: str) -> int:
    """Lock the directory until this process ends; return the descriptor of the lock.

    Raises AlreadyRunning, OSError.
    """
    path = os.path.join(directory, "lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not durable_file.lock(descriptor):
        os.close(descriptor)
        raise AlreadyRunning(f"another azure-scheduled-events holds {path}")
    return descriptor


def is_held(directory: str, descriptor: int) -> bool:
    """Return True if the lock is effective: its file was not removed or replaced."""
    try:
        return os.path.samestat(os.stat(os.path.join(directory, "lock")), os.fstat(descriptor))
    except OSError:
        return False
