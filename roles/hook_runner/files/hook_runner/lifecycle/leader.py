# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Who of an event's VMs approves it, since one approval releases all of them (docs/reference/scheduled-events.md 2.2.4, 2.2.5)."""

from __future__ import annotations

from azure_scheduled_events.approval_rules import blocked_by_scope
from azure_scheduled_events.document import ScheduledEvent, escape_surrogates
from azure_scheduled_events.identity import leader_rank

SELF_ONLY = "self-only"
FIRST = "first"
EXTERNAL = "external"
STRATEGIES = (SELF_ONLY, FIRST, EXTERNAL)


def blocked_by(
    event: ScheduledEvent, own_name: str | None, strategy: str, takeover_after: float, age: float
) -> str | None:
    """What keeps this VM from approving the event, as half a sentence; None where it may.

    takeover_after: seconds after which the next VM in Resources leads, where the strategy is
        "first".
    age: seconds since the event was first seen.
    Raises OwnNameUnknown where the name is not known.
    """
    blocked = blocked_by_scope(event, own_name)
    if blocked is None:
        return None
    others = escape_surrogates(", ".join(event.resources))
    if strategy == SELF_ONLY:
        return f"{blocked.text}, and leader is self-only"
    if strategy == EXTERNAL:
        return f"somebody else approves it for all its VMs ({others}), as leader is external"
    rank = leader_rank(event, own_name)
    if rank is None:
        return f"this VM is not one of its VMs ({others}), so it cannot lead them"
    wait = rank * takeover_after - age
    if wait > 0:
        return f"{escape_surrogates(event.resources[0])} leads; this VM takes over in {wait:.0f} s"
    return None
