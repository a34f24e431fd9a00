# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Whether tests may make a network namespace here, in which 169.254.169.254 can be an address of their own."""

from __future__ import annotations

import os
import shutil
import subprocess

from tools.pytest_stage import pytest_folder
from tools.stage import Job, Outcome, Skip

INTO_A_NAMESPACE = ("unshare", "--net", "--")


def reason_against() -> str | None:
    """Why a network namespace is not to be had; None when it is."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            return f"needs the program {program}"
    tried = subprocess.run(
        [*INTO_A_NAMESPACE, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False
    )
    return f"not allowed here: {tried.stderr.strip()}" if tried.returncode else None


def namespace(job: Job) -> Outcome:
    if reason := reason_against():
        raise Skip(reason)
    return pytest_folder(job, "namespace", prefix=INTO_A_NAMESPACE)
