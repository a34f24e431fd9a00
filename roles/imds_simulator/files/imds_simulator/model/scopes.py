# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""What one group of clients shares: enabling, and DocumentIncarnation (docs/reference/scheduled-events.md 2.5, 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..scenario.knobs import Knobs


@dataclass
class Scope:
    """State of one scope. ``revision`` counts visible changes and never goes back, unlike the incarnation."""

    key: str
    group: str
    incarnation: int
    first_incarnation: int
    revision: int = 0
    enabled_at: float | None = None
    veiled_until: float = math.inf
    events_hidden: bool = False
    last_request: float | None = None
    expired: bool = False

    def changed(self, step: int) -> None:
        """Count one visible change (reference 2.5.1)."""
        # a step may go back (reference 2.5.6), but not below 0
        self.incarnation = max(0, self.incarnation + step)
        self.revision += 1

    def has_been_idle(self, now: float, knobs: Knobs, speed: float) -> bool:
        """Whether the silence before ``now`` was long enough to disable the service (reference 4.1.3)."""
        if self.expired:
            return True
        if self.last_request is None or not knobs.idle_disable:
            return False
        return now - self.last_request > knobs.idle_disable / speed

    def enabled(self, now: float, knobs: Knobs, speed: float) -> bool:
        return self.enabled_at is not None and self.enabled_at <= now and not self.has_been_idle(now, knobs, speed)

    def record_request(self, now: float, knobs: Knobs, speed: float) -> bool:
        """Note a request; True when it is the one that enables the service (reference 4.1.1)."""
        expired = self.has_been_idle(now, knobs, speed)
        self.last_request = now
        if self.enabled_at is not None and not expired:
            return False
        self.expired = False
        if expired and knobs.incarnation_reset:
            self.incarnation = self.first_incarnation
        self.enabled_at = now + knobs.enable_delay / speed
        self.events_hidden = knobs.events_delay > 0
        self.veiled_until = self.enabled_at + knobs.events_delay / speed if self.events_hidden else math.inf
        self.revision += 1
        return True

    def reveal_events(self) -> None:
        """Show the events that were withheld after enabling (reference 4.1.2)."""
        self.events_hidden, self.veiled_until = False, math.inf
        self.revision += 1
