# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Wait for an effect of another process or thread, with a limit in real time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# an expected effect takes milliseconds; only a test that fails waits this long
TIMEOUT = 30.0


def wait_until(
    condition: Callable[[], T],
    what: str = "the condition",
    seconds: float = TIMEOUT,
    explain: Callable[[], object] = lambda: "",
    pause: float = 0.005,
) -> T:
    """Call the condition until it returns a true value, and return that value.

    Args:
        condition: called repeatedly; its value ends the wait when it is true.
        what: name of the expected effect, for the failure.
        seconds: limit of the wait.
        explain: called after a timeout; its value is added to the failure.
        pause: seconds between two calls.

    Raises:
        AssertionError: the condition did not hold in time.
    """
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() >= end:
            raise AssertionError(f"timeout after {seconds:g} s: {what}\n{explain()}")
        time.sleep(pause)
