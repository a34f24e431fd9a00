# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of real hosts: what they need is installed and made first, then pytest runs in namespaces of its own."""

from __future__ import annotations

import shutil

from hosts import possible, rootfs
from hosts.lab import INTO_A_SPACE

from tools.pytests import pytest_folder
from tools.stage import Job, Outcome, Skip, StageFailed

PACKAGE_OF_PROGRAM = {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap"}


def hosts(job: Job) -> Outcome:
    if reason := possible.reason_against():
        raise Skip(reason)
    install_missing(job)
    if job.run(job.workshop.python, "-m", "hosts.rootfs", env={"PYTHONPATH": str(job.workshop.repository / "tests")}):
        raise StageFailed("the root file system of the hosts could not be made")
    if reason := possible.reason_against_nspawn(rootfs.location()):
        raise Skip(reason)
    return pytest_folder(job, "hosts", prefix=INTO_A_SPACE)


def install_missing(job: Job) -> None:
    """The one thing that tests change on the machine, and only where they may."""
    missing = [package for program, package in PACKAGE_OF_PROGRAM.items() if not shutil.which(program)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Skip(f"needs {', '.join(missing)}, and there is no apt-get to install them")
    job.run("apt-get", "-qq", "update")
    if job.run("apt-get", "-qq", "install", "--yes", "--no-install-recommends", *missing, env={"DEBIAN_FRONTEND": "noninteractive"}):
        raise Skip(f"needs {', '.join(missing)}, and apt-get could not install them")
