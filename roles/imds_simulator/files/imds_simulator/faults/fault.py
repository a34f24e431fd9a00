# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One fault: the requests to which it applies, and its effect on them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..keys import Found, Path, key, scalar
from ..times import Moment, When
from ..value_types import DURATION, NAME, NAME_OR_NAMES, WHEN, one_of
from .effects import Effect

# routes of the control plane, which faults of any route of IMDS do not affect
ARM_ROUTE = "arm"
NOTIFY_ROUTE = "notify"
# the routes that a fault can name in every scenario
ROUTES = ("any", "scheduledevents", "instance", "versions", "metadata", ARM_ROUTE, NOTIFY_ROUTE)
_REQUESTS = r"[1-9][0-9]{0,17}(-([1-9][0-9]{0,17})?)?"


class Requests(NamedTuple):
    """The requests of a VM from the ``first`` to the ``last``, counted from 1."""

    first: int = 1
    last: float = math.inf


def _requests(value: Any) -> Requests:
    """Parse ``3`` (the third), ``3-`` (from the third on) or ``3-5`` (the third to the fifth)."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or not re.fullmatch(_REQUESTS, str(value)):
        raise ValueError
    first, dash, last = str(value).partition("-")
    if last and int(last) < int(first):
        raise ValueError("the last request comes before the first")
    return Requests(int(first), int(last) if last else math.inf if dash else int(first))


@dataclass(frozen=True)
class Window:
    """The requests to which a fault applies.

    Times are simulated seconds, counted from simulated time 0 or from the injection, or absolute.
    """

    route: str = key(NAME, "the route of the requests", default="any")
    method: str = key(one_of("any", "GET", "POST", "PUT", "DELETE", "PATCH"), "their method", default="any")
    vms: tuple[str, ...] = key(NAME_OR_NAMES, "the VMs that send them; default: all", default=(), name="vm")
    requests: Requests = key(
        scalar(
            "a request number from 1, or text like 3, 3- or 3-5",
            _requests,
            {"type": ["integer", "string"], "minimum": 1, "pattern": f"^{_REQUESTS}$"},
            "NUMBERS",
        ),
        "which of the matching requests of each VM inside the time window",
        default=Requests(),
    )
    begins: When = key(WHEN, "when the time window begins", default=0.0, name="from")
    until: When = key(WHEN, "when the time window ends", default=math.inf, name="to")
    lasts: float | None = key(DURATION, "how long the time window lasts, in place of to", default=None, name="for")

    def times(self) -> Mapping[Path, When]:
        """Return the times by their paths."""
        return {("from",): self.begins, ("to",): self.until}

    def check(self) -> Found:
        """Yield the problems of keys that do not fit together."""
        if self.route in (ARM_ROUTE, NOTIFY_ROUTE) and self.method not in ("any", "POST"):
            yield ("method",), f"route {self.route} has POST requests only"
        if self.until == math.inf:
            return
        if self.lasts is not None:
            yield ("for",), "give either to or for, not both"
        elif isinstance(self.until, Moment) != isinstance(self.begins, Moment):
            # a fault without from begins at once
            if self.begins:
                yield ("to",), "from and to are a duration and a time; give two durations or two times"
        elif self.until < self.begins:  # type: ignore[operator]  # both are of one type
            yield ("to",), "the fault ends before it begins"

    def matches(self, vm: str, route: str, method: str) -> bool:
        """Return True if route, method and VM match, at any time."""
        return (
            (self.route == route or (self.route == "any" and route not in (ARM_ROUTE, NOTIFY_ROUTE)))
            and self.method in ("any", method)
            and (not self.vms or vm in self.vms)
        )


@dataclass(frozen=True)
class Fault:
    """An effect and its window; ``kind`` is a name of kinds.py, ``place`` the path in a scenario."""

    kind: str
    window: Window
    effect: Effect
    place: Path = ()
