# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decides which VM of an event approves it: one approval releases all of them.

See docs/reference/scheduled-events.md 2.2.4 and 2.2.5.
"""

from __future__ import annotations

from azure_scheduled_events.document import ScheduledEvent, escape_surrogates
from azure_scheduled_events.identity import leader_rank
from azure_scheduled_events.release import blocked_by_scope

SELF_ONLY = "self-only"
FIRST = "first"
EXTERNAL = "external"
STRATEGIES = (SELF_ONLY, FIRST, EXTERNAL)


def blocked_by(
    event: ScheduledEvent, own_name: str | None, strategy: str, takeover_after: float, age: float
) -> str | None:
    """Return why this VM does not approve the event, as a clause; None where it may.

    1. An event that affects this VM alone is this VM's to approve.
    2. With SELF_ONLY and EXTERNAL it approves no other event.
    3. With FIRST the first VM in Resources approves at once, and each next one `takeover_after` seconds after
       the one before it. A VM that is not in Resources never does.

    `age` is the seconds since the event was first seen. Raises OwnNameUnknown while `own_name` is None.
    """
    blocked = blocked_by_scope(event, own_name)
    if blocked is None:
        return None
    others = escape_surrogates(", ".join(event.resources))
    if strategy == SELF_ONLY:
        return f"{blocked.text}, and leader is self-only"
    if strategy == EXTERNAL:
        return f"an external leader approves it for all its VMs ({others})"
    rank = leader_rank(event, own_name)
    if rank is None:
        return f"this VM is not one of its VMs ({others}) and cannot lead them"
    wait = rank * takeover_after - age
    if wait > 0:
        return f"{escape_surrogates(event.resources[0])} leads; this VM takes over in {wait:.0f} s"
    return None
