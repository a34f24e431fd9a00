# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Who asked and approved what when: bounded rings and counts, so that days of polling fit in memory."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import Any, NamedTuple

from ..model.occurrence import Occurrence
from ..times import iso

KEEP_LINES = 10_000
KEEP_REQUESTS = 20_000


class RequestEntry(NamedTuple):
    """One request to the simulated IMDS; ``moment`` is the simulator's clock, ``real`` a steady real one."""

    number: int
    moment: float
    real: float
    vm: str
    method: str
    route: str
    version: str
    status: int
    fault: str
    address: str


class ActivityLog:
    """Two rings: ``lines`` for what matters (life of events, approvals, control), ``requests`` for every request."""

    def __init__(self) -> None:
        self.lines: deque[dict[str, Any]] = deque(maxlen=KEEP_LINES)
        self.requests: deque[RequestEntry] = deque(maxlen=KEEP_REQUESTS)
        self.counts: Counter[tuple[str, str, str, int]] = Counter()
        self._line_number = 0
        self._request_number = 0

    def add_line(self, moment: float, what: str, **fields: Any) -> dict[str, Any]:
        """Note something; returns the line for whoever wants to print it as well."""
        self._line_number += 1
        line = {"number": self._line_number, "time": iso(moment), "what": what, **fields}
        self.lines.append(line)
        return line

    def add_occurrence(self, happening: Occurrence) -> dict[str, Any]:
        return self.add_line(
            happening.moment,
            happening.what,
            group=happening.group,
            event=happening.event,
            id=happening.event_id,
            **happening.detail,
        )

    def add_request(
        self, moment: float, vm: str, method: str, route: str, version: str, status: int, fault: str, address: str
    ) -> None:
        """Count one request. ``status`` 0: the client got no whole answer."""
        self._request_number += 1
        self.requests.append(
            RequestEntry(
                self._request_number, moment, time.monotonic(), vm, method, route, version, status, fault, address
            )
        )
        self.counts[vm, method, route, status] += 1

    def lines_after(self, number: int, what: str | None) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["number"] > number and (what is None or line["what"] == what)]

    def requests_after(self, number: int, vm: str | None) -> list[dict[str, Any]]:
        return [
            dict(each._asdict(), time=iso(each.moment))
            for each in self.requests
            if each.number > number and (vm is None or each.vm == vm)
        ]

    def request_counts(self) -> list[dict[str, Any]]:
        """Counts since the start, by VM, method, route and status."""
        return [
            {"vm": vm, "method": method, "route": route, "status": status, "count": count}
            for (vm, method, route, status), count in sorted(self.counts.items())
        ]

    def dropped(self) -> dict[str, int]:
        """How many older entries the rings have forgotten."""
        return {"lines": self._line_number - len(self.lines), "requests": self._request_number - len(self.requests)}
