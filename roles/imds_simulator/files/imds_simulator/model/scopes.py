# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Scopes: clients that share a document (docs/reference/scheduled-events.md 2.5, 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass


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

    def reveal_events(self) -> None:
        """Show the events that were hidden after the service was enabled (reference 4.1.2)."""
        self.events_hidden, self.hidden_until = False, math.inf
        self.revision += 1
