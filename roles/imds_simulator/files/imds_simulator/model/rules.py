# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The rules of a simulated service: its knobs, and the speed of simulated time."""

from __future__ import annotations

from typing import NamedTuple

from ..moments import Moment, When
from ..scenario.knobs import Knobs


class Rules(NamedTuple):
    """Knobs and speed of a simulated service.

    ``speed``: the simulated seconds that pass in one second of the simulator's clock.
    """

    knobs: Knobs
    speed: float = 1.0

    def moment_of(self, when: When, base: float) -> float:
        """Return ``when`` on the simulator's clock; simulated seconds count from ``base``."""
        if isinstance(when, Moment):
            return when.unix + self.to_wall_seconds(when.later)
        return base + self.to_wall_seconds(when)

    def to_wall_seconds(self, simulated: float) -> float:
        """Return how many seconds of the simulator's clock ``simulated`` seconds take."""
        return simulated / self.speed
