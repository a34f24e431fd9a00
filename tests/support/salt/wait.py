# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Wait for an effect of another process, with a limit in real time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
# seconds; long, because the machine may be busy, and only a test that fails waits this long
TIMEOUT = 120.0


def wait_until(condition: Callable[[], Found], what: str | Callable[[], str], seconds: float = TIMEOUT) -> Found:
    """Return the first true result of the condition.

    Args:
        condition: called 20 times a second.
        what: the expected effect, for the error.
        seconds: limit of the wait.

    Raises:
        AssertionError: the condition did not hold in time.
    """
    end = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.05)
