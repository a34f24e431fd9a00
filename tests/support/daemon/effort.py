# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The effort of a piece of work as counts, which are the same on each machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def effort(work: Callable[[], object]) -> int:
    """Do the work in this thread and return its executed lines of Python, one for each turn of a loop.

    A loop in one function written in C counts as one.
    """
    lines = 0

    def trace(frame: FrameType, what: str, _argument: Any) -> Callable[..., Any] | None:
        nonlocal lines
        lines += what == "line"
        return trace

    # the tracer of a coverage run is restored afterwards
    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(earlier)
    return lines
