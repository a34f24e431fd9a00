# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The rules that a simulated service follows: its knobs, and how fast simulated time passes."""

from __future__ import annotations

from typing import NamedTuple

from ..scenario.knobs import Knobs


class Rules(NamedTuple):
    """Knobs, and ``speed``: the simulated seconds that pass in one second of the simulator's clock."""

    knobs: Knobs
    speed: float = 1.0

    def to_wall_seconds(self, simulated: float) -> float:
        """Return how many seconds of the simulator's clock ``simulated`` seconds take."""
        return simulated / self.speed
