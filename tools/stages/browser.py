# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of the live page, which needs Chromium."""

from __future__ import annotations

from support.browser import find_browser, packages
from support.hosts import rootfs
from tools.stage import Job, Outcome, Skip
from tools.stages.apt_packages import install_missing
from tools.stages.pytest_stage import pytest_folder


def browser(job: Job) -> Outcome:
    """Run the tests of the live page in a real browser."""
    with rootfs.only_one(rootfs.CACHE, "apt"):
        install_missing(job, packages())
    if find_browser() is None:
        raise Skip("needs Chromium and its driver")
    return pytest_folder(job, "functional/browser")
