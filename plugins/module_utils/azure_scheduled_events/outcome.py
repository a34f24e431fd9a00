# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The outcome of an event that is over. Nothing else decides it.

IMDS does not report it: an event that was never seen Started was canceled, or has started and ended between two
answers. It needs the standard library only: the ready hooks have a link to this file, and nothing else of the helper.
"""

from __future__ import annotations

COMPLETED = "completed"
CANCELED = "canceled"
UNKNOWN = "unknown"
OUTCOMES = (COMPLETED, CANCELED, UNKNOWN)
# the last status of an event in Event Grid and Resource Graph, which IMDS does not have
_LAST_STATUSES = {"completed": COMPLETED, "canceled": CANCELED, "cancelled": CANCELED}


def outcome_of(seen_started: bool, *reported: str) -> str:
    """Return the outcome of an event that is over, one of OUTCOMES.

    Args:
        seen_started: whether it was ever listed as Started.
        reported: the outcomes that Event Grid, Resource Graph and other VMs report; the first known one counts.
    """
    if seen_started:
        return COMPLETED
    return next((outcome for outcome in reported if outcome != UNKNOWN), UNKNOWN)


def reported_outcome(status: str) -> str | None:
    """Return the outcome that a status of Event Grid or Resource Graph states; None if it is not a last status."""
    return _LAST_STATUSES.get(status.strip().casefold())
