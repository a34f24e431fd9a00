# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of the site of the documentation, which needs Chromium for a part of its tests."""

from __future__ import annotations

from support.browser import packages
from support.hosts import rootfs
from tools.stage import Job, Outcome
from tools.stages.apt_packages import install_missing
from tools.stages.pytest_stage import pytest_folder


def docs_site(job: Job) -> Outcome:
    """Build the site and test it; without Chromium the tests in a browser are skipped, with the reason."""
    with rootfs.only_one(rootfs.CACHE, "apt"):
        install_missing(job, packages())
    return pytest_folder(job, "functional/docs_site")
