# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of the start pages, one of which needs Java."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from support.eda.rulebook import java_home
from tools.stage import Job, Outcome, Skip
from tools.stages.eda import install_java
from tools.stages.pytest_stage import pytest_folder


def start_pages(job: Job, *, options: Sequence[str] = ()) -> Outcome:
    """Run the tests of docs/start; the short form, which has options of pytest, needs no Java."""
    if not options and java_home() is None:
        # without Java the test of its page is skipped, with the reason
        with contextlib.suppress(Skip):
            install_java(job)
    return pytest_folder(job, "functional/start", options=options)
