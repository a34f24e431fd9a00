# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages of the role maintenance: two, so that they run side by side."""

from __future__ import annotations

from tools.pytest_stage import pytest_folder
from tools.stage import Job, Outcome

# the files of tests/maintenance in which controllers, hosts and connections are lost
INTERRUPTED = "test_maintenance_killed or test_maintenance_lost_hosts or test_maintenance_two_runs"


def maintenance(job: Job) -> Outcome:
    return pytest_folder(job, "maintenance", "-k", f"not ({INTERRUPTED})")


def maintenance_interrupted(job: Job) -> Outcome:
    return pytest_folder(job, "maintenance", "-k", INTERRUPTED, results="maintenance-interrupted")
