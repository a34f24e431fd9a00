# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The next moment at which the daemon has to end a hook, in monotonic seconds. Pure."""

from __future__ import annotations

from datetime import datetime


def hook_ends(limit: float | None, end: datetime | None, now: datetime, monotonic: float) -> float | None:
    """Return the monotonic seconds at which a hook has to be ended; None where neither bound is known.

    Args:
        limit: monotonic seconds at which its timeout is over, or None.
        end: aware time by the server's clock at which its stage has to be over, or None.
        now: the present by the server's clock.
        monotonic: the present in monotonic seconds.
    """
    bounds = [] if limit is None else [limit]
    if end is not None:
        bounds.append(monotonic + (end - now).total_seconds())
    return min(bounds, default=None)
