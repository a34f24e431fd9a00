# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Finds the closed gates that keep a policy from approving an event."""

from __future__ import annotations

from typing import Sequence

from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.errors import OwnNameUnknown
from azure_scheduled_events.policy import MANUAL, NEVER, Decision, Policy

_WITHOUT_APPROVAL = (NEVER, MANUAL)


def awaited_gates(policy: Policy, event: ScheduledEvent, context: PolicyContext, decision: Decision) -> list[str]:
    """Return the closed gates because of which the policy does not approve an event.

    `decision` is what the policy decided in `context`.

    1. A decision that approves, now or after preparation, waits for no gate.
    2. The policy decides again as if all closed gates were open. If it does not approve then either, or cannot
       decide, no gate is the reason.
    3. Otherwise each closed gate, in the order of the names, is left out if the policy decides as in 2 while
       this gate, like those that were left out before, stays closed.
    """
    if decision.approval not in _WITHOUT_APPROVAL:
        return []
    closed = sorted(name for name, is_open in context.gates.items() if not is_open)

    def with_open(names: Sequence[str]) -> Decision | None:
        try:
            return policy.decide(event, context._replace(gates={**context.gates, **dict.fromkeys(names, True)}))
        except OwnNameUnknown:
            return None

    wanted = with_open(closed)
    if wanted is None or wanted.approval in _WITHOUT_APPROVAL:
        return []
    for name in list(closed):
        others = [other for other in closed if other != name]
        if with_open(others) == wanted:
            closed = others
    return closed
