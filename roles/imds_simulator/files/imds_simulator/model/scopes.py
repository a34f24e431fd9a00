# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Scopes: clients that share a document (docs/reference/scheduled-events.md 2.5, 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .rules import Rules


@dataclass
class Scope:
    """The state of one scope: whether the service is enabled, and DocumentIncarnation.

    ``revision`` counts visible changes. Unlike the incarnation it never decreases.
    """

    key: str
    group: str
    incarnation: int
    first_incarnation: int
    revision: int = 0
    enabled_at: float | None = None
    hidden_until: float = math.inf
    events_hidden: bool = False
    last_request: float | None = None
    forced_idle: bool = False

    def count_change(self, step: int) -> None:
        """Count one visible change (reference 2.5.1)."""
        # a step may be negative (reference 2.5.6)
        self.incarnation = max(0, self.incarnation + step)
        self.revision += 1

    def has_been_idle(self, now: float, rules: Rules) -> bool:
        """Return True if the time without requests was long enough to disable the service (reference 4.1.3)."""
        if self.forced_idle:
            return True
        if self.last_request is None or not rules.knobs.idle_disable:
            return False
        return now - self.last_request > rules.to_wall_seconds(rules.knobs.idle_disable)

    def enabled(self, now: float, rules: Rules) -> bool:
        """Return True if the service is enabled for the scope at ``now``."""
        return self.enabled_at is not None and self.enabled_at <= now and not self.has_been_idle(now, rules)

    def record_request(self, now: float, rules: Rules) -> bool:
        """Record a request; return True if this request enables the service (reference 4.1.1)."""
        expired = self.has_been_idle(now, rules)
        self.last_request = now
        if self.enabled_at is not None and not expired:
            return False
        self.forced_idle = False
        if expired and rules.knobs.incarnation_reset:
            self.incarnation = self.first_incarnation
        self.enabled_at = now + rules.to_wall_seconds(rules.knobs.enable_delay)
        self.events_hidden = rules.knobs.events_delay > 0
        events_delay = rules.to_wall_seconds(rules.knobs.events_delay)
        self.hidden_until = self.enabled_at + events_delay if self.events_hidden else math.inf
        self.revision += 1
        return True

    def reveal_events(self) -> None:
        """Show the events that were hidden after the service was enabled (reference 4.1.2)."""
        self.events_hidden, self.hidden_until = False, math.inf
        self.revision += 1
