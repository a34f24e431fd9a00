# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The boot of this host: another id means that it was rebooted."""

from __future__ import annotations

_PATH = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str:
    """Return the id, or "" if the kernel does not show it."""
    try:
        with open(_PATH, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
