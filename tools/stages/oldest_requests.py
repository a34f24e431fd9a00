# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The helper with the requests and urllib3 of older distributions, whose insides differ from today's."""

from __future__ import annotations

import sys

from tools.stage import Job, Outcome
from tools.stages.pytest_stage import pytest_folder

# the versions of Debian 11 and RHEL 9; urllib3 1.26.5 itself does not run on Python 3.12
OLD = ("requests==2.25.1", "urllib3==1.26.5", "idna<3", "chardet<5")
FOR_PYTHON_312 = ("requests==2.31.*", "urllib3==1.26.*")


def transport(job: Job) -> Outcome:
    """Run tests/functional/transport with the old pair in front of the installed one."""
    folder = job.environment.cache / "old-requests"
    if not folder.is_dir():
        wanted = OLD if sys.version_info < (3, 12) else FOR_PYTHON_312
        job.run_or_fail(job.environment.python, "-m", "pip", "install", "-qq", "--target", folder, *wanted)
    return pytest_folder(
        job, "functional/transport", prefix=("env", f"PYTHONPATH={folder}"), results="transport-oldest"
    )
