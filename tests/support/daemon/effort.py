# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The effort of a piece of work as counts, which are the same on each machine, however busy it is."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple


class Effort(NamedTuple):
    """Counts of work.

    Attributes:
        lines: executed lines of Python, one for each turn of a loop or comprehension.
        instructions: of SQLite's virtual machine, by its own approximate count.
    """

    lines: int
    instructions: int


def effort(work: Callable[[], object], connection: sqlite3.Connection | None = None) -> Effort:
    """Do the work in this thread and count its lines. A loop in one function written in C counts as one.

    ``connection`` is the connection to SQLite that the work uses, if any.
    """
    lines = instructions = 0

    def trace(frame: FrameType, what: str, _argument: Any) -> Callable[..., Any] | None:
        nonlocal lines
        if frame.f_code is count_instruction.__code__:
            return None
        lines += what == "line"
        return trace

    def count_instruction() -> int:
        nonlocal instructions
        instructions += 1
        return 0

    # the tracer of a coverage run is restored afterwards
    earlier = sys.gettrace()
    if connection is not None:
        connection.set_progress_handler(count_instruction, 1)
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(earlier)
        if connection is not None:
            connection.set_progress_handler(None, 1)
    return Effort(lines, instructions)
