# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One fault of a scenario or of the control API."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..keys import Path
from ..moments import When

# routes of the control plane, which faults of any route of IMDS do not affect
ARM_ROUTE = "arm"
NOTIFY_ROUTE = "notify"
# the routes that a fault can name in every scenario
ROUTES = ("any", "scheduledevents", "instance", "versions", "metadata", ARM_ROUTE, NOTIFY_ROUTE)


@dataclass(frozen=True)
class Fault:
    """A fault and its window.

    Times are simulated seconds, counted from simulated time 0 or from the injection, or absolute. ``action`` is
    the effect on a request; fault_kinds.py lists the actions with their names and defaults.
    ``first`` and ``last`` count the matching requests of each VM inside the time window, from 1.
    ``options`` are the settings of the action.
    """

    kind: str
    action: str
    route: str = "any"
    method: str = "any"
    vms: tuple[str, ...] = ()
    first: int = 1
    last: int | None = None
    begins: When = 0.0
    ends: When = math.inf
    options: Mapping[str, object] = field(default_factory=dict)
    place: Path = ()

    def matches(self, vm: str, route: str, method: str) -> bool:
        """Return True if route, method and VM match; the window is not checked."""
        return (
            self.action != "refuse"
            and (self.route == route or (self.route == "any" and route not in (ARM_ROUTE, NOTIFY_ROUTE)))
            and self.method in ("any", method)
            and (not self.vms or vm in self.vms)
        )
