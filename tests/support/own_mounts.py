# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A process in a mount namespace of its own, with which its mounts end."""

from __future__ import annotations

import os
import subprocess

IN_OWN_MOUNTS = ("unshare", "--mount", "--")


def skip_reason() -> str:
    """Return why a mount namespace is not possible here, or ""."""
    if os.geteuid() != 0:
        return "a mount namespace needs root"
    tried = subprocess.run(
        [*IN_OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False
    )
    return tried.stderr.strip() if tried.returncode else ""
