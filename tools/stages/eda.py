# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of ansible-rulebook, which needs Java."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from support.eda.rulebook import java_home
from tools.stage import Job, Outcome, Skip
from tools.stages.pytest_stage import pytest_folder

JAVA = "default-jre-headless"


def eda(job: Job, options: Sequence[str] = ()) -> Outcome:
    """Run the tests of the event source, the event filter and the rulebooks."""
    if java_home() is None:
        install_java(job)
    return pytest_folder(job, "functional/eda", options=options)


def install_java(job: Job) -> None:
    """Install Java.

    Raises:
        Skip: it cannot be installed here.
    """
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Skip("ansible-rulebook needs Java 17 or later; it is installed only by root and with apt-get")
    job.run("apt-get", "-qq", "update")
    command = ("apt-get", "-qq", "install", "--yes", "--no-install-recommends", JAVA)
    if job.run(*command, env={"DEBIAN_FRONTEND": "noninteractive"}) or java_home() is None:
        raise Skip("ansible-rulebook needs Java 17 or later, and apt-get could not install it")
