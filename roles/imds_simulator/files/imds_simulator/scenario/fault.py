# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One fault as a scenario or the control API describes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    """A fault and its window. Durations are simulated seconds, counted from simulated time 0 or from injection.

    ``action`` is what is done to the request; fault_kinds.py gives actions their names and
    defaults. ``first`` and ``last`` count the matching requests of each VM inside the time window,
    from 1. ``options`` belong to the action.
    """

    kind: str
    action: str
    route: str = "any"
    method: str = "any"
    vms: tuple[str, ...] = ()
    first: int = 1
    last: int | None = None
    begins: float = 0.0
    ends: float = math.inf
    options: Mapping[str, object] = field(default_factory=dict)

    def matches(self, vm: str, route: str, method: str) -> bool:
        return (
            self.action != "refuse"
            and self.route in ("any", route)
            and self.method in ("any", method)
            and (not self.vms or vm in self.vms)
        )
