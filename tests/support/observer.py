# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A client of the helper, as a daemon or a beacon would build it: it polls and records changes."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from azure_scheduled_events import Imds, ImdsError, Policy, PolicyContext, changes
from azure_scheduled_events.changes import carry_over_hidden
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.identity import affects
from azure_scheduled_events.pacing import Pacer
from support.simulator_process import Simulator


class Observer:
    """The client on one VM.

    Attributes:
        notes: one line for each change.
        errors: the class names of errors.
    """

    def __init__(self, azure: Simulator, name: str = "vm1", version: str = "2020-07-01") -> None:
        self.azure = azure
        self.name = name
        self.slept: list[float] = []
        self.imds = Imds(azure.endpoints[name], version, timeout=60)
        self.pacer = Pacer(self.imds, clock=lambda: sum(self.slept), sleep=self.slept.append, jitter=lambda: 0.0)
        self.known: EventDocument | None = None
        self.notes: list[str] = []
        self.errors: list[str] = []

    def poll(self, after: float = 0) -> list[str]:
        """Let simulated seconds pass, poll once, and return the changes."""
        if after:
            self.azure.advance(after)
        try:
            document = self.pacer.call(self.imds.events)
        except ImdsError as error:
            self.errors.append(type(error).__name__)
            return []
        found = [
            f"{change.kind} {change.event.event_type} {self._state(change.event)}"
            for change in changes(self.known, document)
        ]
        self.known = carry_over_hidden(self.known, document)
        self.notes += found
        return found

    def single_event(self) -> ScheduledEvent:
        """Return the only event that is known."""
        assert self.known is not None
        (event,) = self.known.events
        return event

    def decide(self, policy: Policy, **situation: Any) -> tuple[str, bool]:
        """Evaluate a policy for the only event; return (approval, due)."""
        now = self.known.server_time if self.known is not None else None
        decision = policy.decide(
            self.single_event(), PolicyContext(now or datetime.now(timezone.utc), self.name)._replace(**situation)
        )
        return decision.approval, decision.due

    def seconds_left(self) -> float:
        assert self.known is not None and self.known.server_time is not None
        return self.single_event().seconds_left(self.known.server_time)

    def _state(self, event: ScheduledEvent) -> str:
        return f"{event.status} {'mine' if affects(event, self.name) else 'of others'}"
