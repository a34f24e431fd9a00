# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Checks whether hosts of the lab can run on this machine, by trial."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support.hosts.control_groups import JOIN, groups_of_a_lab
from support.hosts.namespaces import UNSHARE_COMMAND

PROGRAMS = ("setpriv", "unshare", "nsenter", "ip", "mount")
OVERLAY = """
set -e
mount -t tmpfs try "$1"
cd "$1"
mkdir lower upper work merged
mount -t overlay try -o lowerdir=lower,upperdir=upper,workdir=work merged
ip link add try type bridge
"""


def skip_reason() -> str | None:
    """Return why namespaces, overlays or control groups are not available, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in PROGRAMS:
        if not shutil.which(program):
            return f"needs the program {program}"
    try:
        with groups_of_a_lab():
            pass
    except OSError as error:
        return f"needs permission to create control groups: {error.strerror}"
    with tempfile.TemporaryDirectory() as folder:
        return failure(
            "namespaces with overlays and bridges are not allowed here",
            [*UNSHARE_COMMAND, "sh", "-c", OVERLAY, "try", folder],
        )


def skip_reason_of_nspawn(root: Path) -> str | None:
    """Return why systemd-nspawn cannot run a command in this root, or None."""
    nspawn = [
        *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--read-only"),
        *(f"--directory={root}", "--pipe", "true"),
    ]
    with groups_of_a_lab() as groups:
        return failure(
            "systemd-nspawn does not work here",
            [*UNSHARE_COMMAND, "sh", "-c", JOIN, "join", *map(str, groups), "--", *nspawn],
        )


def failure(what: str, command: Sequence[str]) -> str | None:
    tried = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
    )
    said = tried.stderr.strip().splitlines() or [f"status {tried.returncode}"]
    return f"{what}: {said[-1]}" if tried.returncode else None
