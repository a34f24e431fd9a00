# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages of real hosts: what they need is installed and made first, then pytest runs in namespaces of its own."""

from __future__ import annotations

import shutil

from support.hosts import capabilities
from support.hosts import rootfs
from support.hosts.lab import UNSHARE_COMMAND
from tools.pytest_stage import pytest_folder
from tools.stage import Job, Outcome, Skip, StageFailed

# the files of tests/hosts that are stages of their own, so that they run beside the others
OF_THE_ROLE, OF_OTHER_DEBIANS = "test_hook_runner_role", "test_other_debians"
PACKAGE_OF_PROGRAM = {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap"}


def hosts(job: Job) -> Outcome:
    make_ready(job, rootfs.SUITE)
    return pytest_folder(job, "hosts", "-k", f"not {OF_THE_ROLE} and not {OF_OTHER_DEBIANS}", prefix=UNSHARE_COMMAND)


def hosts_role(job: Job) -> Outcome:
    make_ready(job, rootfs.SUITE)
    return pytest_folder(job, "hosts", "-k", OF_THE_ROLE, prefix=UNSHARE_COMMAND, results="hosts-role")


def hosts_others(job: Job) -> Outcome:
    make_ready(job, *rootfs.OTHER_SUITES)
    return pytest_folder(job, "hosts", "-k", OF_OTHER_DEBIANS, prefix=UNSHARE_COMMAND, results="hosts-others")


def recipes(job: Job) -> Outcome:
    make_ready(job, rootfs.SUITE)
    return pytest_folder(job, "recipes", prefix=UNSHARE_COMMAND)


def chaos(job: Job) -> Outcome:
    """Its seeds make namespaces for themselves."""
    make_ready(job, rootfs.SUITE)
    return pytest_folder(job, "chaos")


def make_ready(job: Job, *suites: str) -> None:
    """Make the roots of these Debians, or raise Skip where hosts cannot run."""
    if reason := capabilities.skip_reason():
        raise Skip(reason)
    with rootfs.only_one(rootfs.CACHE, "apt"):
        install_missing(job)
    if job.run(
        job.workshop.python,
        "-m",
        "support.hosts.rootfs",
        *suites,
        env={"PYTHONPATH": str(job.workshop.repository / "tests")},
    ):
        raise StageFailed("a root file system of the hosts could not be made")
    if reason := capabilities.skip_reason_of_nspawn(rootfs.location(suites[0])):
        raise Skip(reason)


def install_missing(job: Job) -> None:
    """The one thing that tests change on the machine, and only where they may."""
    missing = [package for program, package in PACKAGE_OF_PROGRAM.items() if not shutil.which(program)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Skip(f"needs {', '.join(missing)}, and there is no apt-get to install them")
    job.run("apt-get", "-qq", "update")
    if job.run(
        "apt-get",
        "-qq",
        "install",
        "--yes",
        "--no-install-recommends",
        *missing,
        env={"DEBIAN_FRONTEND": "noninteractive"},
    ):
        raise Skip(f"needs {', '.join(missing)}, and apt-get could not install them")
