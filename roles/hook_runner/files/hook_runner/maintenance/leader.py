# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decides whether this VM releases the other VMs of an event: one approval releases all of them.

See docs/reference/scheduled-events.md 2.2.4 and 2.2.5.
"""

from __future__ import annotations

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.release import all_vms, seconds_to_turn
from hook_runner.config.values import EXTERNAL, SELF_ONLY


def blocked_by(
    event: ScheduledEvent, own_name: str | None, strategy: str, takeover_after: float, age: float
) -> str | None:
    """Return why this VM does not release the other VMs of the event, as a clause; None where it does.

    1. With SELF_ONLY and EXTERNAL it never does.
    2. With FIRST the first VM of the event, by name, does at once, and each next one `takeover_after` seconds after
       the one before it.

    `age` is the seconds since the event was first seen.
    """
    if strategy == SELF_ONLY:
        return "leader is self-only"
    if strategy == EXTERNAL:
        return "an external leader approves it"
    wait = seconds_to_turn(event.resources, own_name or "", takeover_after, age)
    if wait is None:
        return "this VM is not one of them"
    if wait <= 0:
        return None
    vms = all_vms([event.resources])
    first = vms[min(vms)]
    return f"{first} leads; this VM takes over in {wait:.0f} s"
