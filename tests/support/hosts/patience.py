# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Waiting for what is bound to happen."""

from __future__ import annotations

import time
from collections.abc import Callable

# seconds; only what never comes takes so long, however busy the machine is
LONGEST = 60.0


def until(
    condition: Callable[[], object], what: str, explain: Callable[[], object] = lambda: "", longest: float = LONGEST
) -> None:
    """Return as soon as the condition holds; AssertionError with `what` and the explanation where it never does."""
    end = time.monotonic() + longest
    while not condition():
        assert time.monotonic() < end, f"not within {longest:.0f} s: {what}\n{explain()}"
        time.sleep(0.05)
