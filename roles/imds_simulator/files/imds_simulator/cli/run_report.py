# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The option ``--report``: writes a report at the end of a run."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from ..control.state import run_data
from ..report.atomic_file import write_whole
from ..report.page import report
from ..simulator import RunningSimulator
from .output import print_problem


def write_report(file: Path, simulator: RunningSimulator) -> int:
    """Write the report and print its path on stderr; return the exit code, 2 if the file cannot be written."""
    text = report(run_data(simulator.engine, simulator.endpoints))
    try:
        write_whole(file, text)
    except OSError as error:
        print_problem(f"--report: cannot write {file}: {error.strerror}; {_keep(text)}")
        return 2
    # one write, because the thread that writes the log may write between two
    print(f"report {file}\n", end="", file=sys.stderr, flush=True)
    return 0


def _keep(text: str) -> str:
    """Write the report to a temporary file, because the run is over, and return where it is."""
    name = ""
    try:
        descriptor, name = tempfile.mkstemp(prefix="imds-simulator-report-", suffix=".html")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        return f"no temporary file either: {error.strerror}; the report is lost"
    return f"the report is in {name}"
