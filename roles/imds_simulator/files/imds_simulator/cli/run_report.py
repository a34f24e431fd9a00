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
from .program import program_name


class RunReport:
    """The report of this run.

    ``file``: where to write it; None: no report. ``status`` is the exit code for its errors, 0 without one.
    """

    def __init__(self, file: str | None) -> None:
        self.status = 0
        self._file = None if file is None else Path(file)

    def write(self, simulator: RunningSimulator) -> None:
        """Write the report and print its path on stderr; if the file cannot be written, try a temporary file."""
        if self._file is None:
            return
        text = report(run_data(simulator.engine, simulator.endpoints))
        try:
            write_whole(self._file, text)
            # one write, because the thread that writes the log may write between two
            print(f"report {self._file}\n", end="", file=sys.stderr, flush=True)
        except OSError as error:
            self.status = 2
            print(
                f"{program_name()}: --report: cannot write {self._file}: {error.strerror}; {_keep(text)}",
                file=sys.stderr,
            )


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
