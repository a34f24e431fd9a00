# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Wait for a condition, with a limit in real time."""

from __future__ import annotations

import time
from collections.abc import Callable

# seconds; long, because only a condition that never holds takes all of it
DEFAULT_TIMEOUT = 60.0


def wait_until(
    condition: Callable[[], object],
    what: str,
    explain: Callable[[], object] = lambda: "",
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Return as soon as the condition holds.

    Args:
        condition: called 20 times a second.
        what: the condition in words, for the error.
        explain: returns more about a failure, such as log lines.
        timeout: seconds.

    Raises:
        AssertionError: the condition did not hold in time.
    """
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not within {timeout:.0f} s: {what}\n{explain()}"
        time.sleep(0.05)
