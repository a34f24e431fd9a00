# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The end of a run whose output has lost its reader, as after ``| head``."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Callable

# the exit code that a shell shows for a program that SIGPIPE ended
CLOSED_OUTPUT = 141


def survive_closed_output(run: Callable[[], int]) -> int:
    """Return the exit code of ``run``, or CLOSED_OUTPUT if its output could not be written."""
    try:
        try:
            return run()
        finally:
            # Python writes the rest at its end, where an error would become a traceback
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return CLOSED_OUTPUT


def _discard_output() -> None:
    """Let the buffered rest of the output go to /dev/null."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(null, stream.fileno())
    os.close(null)
