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

    Args:
        policy: of the configuration.
        event: the event.
        context: in which the policy decided.
        decision: its decision.
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
