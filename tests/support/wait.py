# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Wait for an effect of another process or thread, with a limit in real time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# seconds; long, because only a condition that never holds takes all of it
DEFAULT_TIMEOUT = 120.0


def wait_until(
    condition: Callable[[], T],
    what: str | Callable[[], str] = "the condition",
    explain: Callable[[], object] = lambda: "",
    timeout: float = DEFAULT_TIMEOUT,
    pause: float = 0.02,
) -> T:
    """Call the condition until it returns a true value, and return that value.

    Args:
        condition: called repeatedly.
        what: the expected effect, for the error; called after a timeout if it is a function.
        explain: called after a timeout; it returns more about the failure, such as log lines.
        timeout: seconds.
        pause: seconds between two calls.

    Raises:
        AssertionError: the condition did not hold in time.
    """
    end = time.monotonic() + timeout
    while not (found := condition()):
        if time.monotonic() >= end:
            raise AssertionError(f"not within {timeout:g} s: {what if isinstance(what, str) else what()}\n{explain()}")
        time.sleep(pause)
    return found
