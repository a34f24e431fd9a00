# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Wait for something to be so, no longer than needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
# for a machine that has much else to do
PATIENCE = 120.0


def until(look: Callable[[], Found], what: str | Callable[[], str], seconds: float = PATIENCE) -> Found:
    """The first true answer of ``look``; fails with the reason when there is none in time."""
    end = time.monotonic() + seconds
    while True:
        if found := look():
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.05)
