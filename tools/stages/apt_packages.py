# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Programs that stages need, from the packages of Debian."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from tools.stage import Job, Skip


def install_missing(job: Job, package_of_program: Mapping[str, str]) -> None:
    """Install the packages of the programs that are missing. The tests change nothing else on the machine.

    Raises:
        Skip: they cannot be installed here.
    """
    missing = [package for program, package in package_of_program.items() if not shutil.which(program)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Skip(f"needs {', '.join(missing)}, which only root can install, and only with apt-get")
    job.run("apt-get", "-qq", "update")
    command = ("apt-get", "-qq", "install", "--yes", "--no-install-recommends", *missing)
    if job.run(*command, env={"DEBIAN_FRONTEND": "noninteractive"}):
        raise Skip(f"needs {', '.join(missing)}, and apt-get could not install them")
