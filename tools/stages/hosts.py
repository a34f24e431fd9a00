# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages of real hosts. They install their programs, make root file systems, and run pytest in namespaces."""

from __future__ import annotations

from collections.abc import Sequence

from support.hosts import capabilities, rootfs
from support.hosts.lab import UNSHARE_COMMAND
from tools.stage import Job, Outcome, Skip, StageFailed
from tools.stages.apt_packages import install_missing
from tools.stages.pytest_stage import pytest_folder

# the files of tests/system/hosts that are stages of their own, so that they run beside the others
ROLE_TESTS, OTHER_DEBIAN_TESTS = "test_hook_runner_role", "test_other_debians"
PACKAGE_OF_PROGRAM = {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap"}


def hosts(job: Job, options: Sequence[str] = ()) -> Outcome:
    """Run the tests of hosts that are in no other stage."""
    make_ready(job, rootfs.SUITE, rootfs.WORKLOADS)
    selection = ("-k", f"not {ROLE_TESTS} and not {OTHER_DEBIAN_TESTS}")
    return pytest_folder(job, "system/hosts", options=(*selection, *options), prefix=UNSHARE_COMMAND)


def hosts_role(job: Job, options: Sequence[str] = ()) -> Outcome:
    """Run the tests of the role hook_runner."""
    make_ready(job, rootfs.SUITE)
    return pytest_folder(
        job, "system/hosts", options=("-k", ROLE_TESTS, *options), prefix=UNSHARE_COMMAND, results="hosts-role"
    )


def hosts_others(job: Job) -> Outcome:
    """Run the tests of the other releases of Debian."""
    make_ready(job, *rootfs.OTHER_SUITES)
    return pytest_folder(
        job, "system/hosts", options=("-k", OTHER_DEBIAN_TESTS), prefix=UNSHARE_COMMAND, results="hosts-others"
    )


def recipes(job: Job, options: Sequence[str] = ()) -> Outcome:
    """Run the recipes of the documentation on hosts."""
    make_ready(job, rootfs.SUITE)
    return pytest_folder(job, "system/recipes", options=options, prefix=UNSHARE_COMMAND)


def ready_hooks(job: Job, options: Sequence[str] = ()) -> Outcome:
    """Run the ready hooks with the workloads that they prepare."""
    make_ready(job, rootfs.WORKLOADS, *(() if options else (rootfs.CRIU_SUITE,)))
    return pytest_folder(job, "system/ready_hooks", options=options, prefix=UNSHARE_COMMAND)


def zero_loss(job: Job) -> Outcome:
    """Run the short form of the demonstration that no request is lost."""
    make_ready(job, rootfs.WORKLOADS)
    return pytest_folder(job, "labs/demo", prefix=UNSHARE_COMMAND)


def promises(job: Job, options: Sequence[str] = ()) -> Outcome:
    """Run the matrix of cases and coordinators; each file of results has the table at its end."""
    make_ready(job, rootfs.SUITE)
    return pytest_folder(job, "labs/promises", limit=3600, options=options, prefix=UNSHARE_COMMAND)


def chaos(job: Job) -> Outcome:
    """Run a few seeds; each makes its namespaces itself."""
    make_ready(job, rootfs.SUITE)
    return pytest_folder(job, "labs/chaos")


def make_ready(job: Job, *suites: str) -> None:
    """Make the root file systems of these releases of Debian.

    Raises:
        Skip: this machine cannot run hosts.
        StageFailed: a root file system could not be made.
    """
    if reason := capabilities.skip_reason():
        raise Skip(reason)
    with rootfs.only_one(rootfs.CACHE, "apt"):
        install_missing(job, PACKAGE_OF_PROGRAM)
    if job.run(
        job.environment.python,
        "-m",
        "support.hosts.rootfs",
        *suites,
        env={"PYTHONPATH": str(job.environment.repository / "tests")},
    ):
        raise StageFailed("a root file system of the hosts could not be made")
    if reason := capabilities.skip_reason_of_nspawn(rootfs.location(suites[0])):
        raise Skip(reason)
