# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Run a ready hook: python3 ready_hooks NAME VERB [OPTION...]."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def run() -> int:
    """Run the command line, and return the exit status."""
    # Python has put this folder on the path; imports need the one above it
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    from ready_hooks.cli import main

    # a text of the workload that the encoding of the log lacks must not end the hook
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _end)
    return main(sys.argv[1:])


def _end(_signal: int, _frame: FrameType | None) -> None:
    """End the hook as after an error; therefore the program that it runs ends, too."""
    raise SystemExit("the hook was ended by SIGTERM; its record has what recover undoes")


sys.exit(run())
