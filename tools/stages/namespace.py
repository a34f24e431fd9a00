# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of the network namespace, in which 169.254.169.254 is an address of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess

from tools.stage import Job, Outcome, Skip
from tools.stages.pytest_stage import pytest_folder

UNSHARE_COMMAND = ("unshare", "--net", "--")


def skip_reason() -> str | None:
    """Return why this machine has no network namespace for tests, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            return f"needs the program {program}"
    tried = subprocess.run(
        [*UNSHARE_COMMAND, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False
    )
    return f"not allowed here: {tried.stderr.strip()}" if tried.returncode else None


def namespace(job: Job) -> Outcome:
    """Run tests/namespace."""
    if reason := skip_reason():
        raise Skip(reason)
    return pytest_folder(job, "namespace", prefix=UNSHARE_COMMAND)
