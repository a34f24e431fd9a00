# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The log of a running simulator, in bounded memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from ..times import iso

MAX_LINES = 10_000
# lines about VMs that received an event; a ring of its own, so that a thousand VMs do not displace the other lines
MAX_SEEN = 10_000
SEEN = "seen"
MAX_REQUESTS = 20_000
# the kinds of lines: occurrences of the model, requests of clients, notifications and commands, and the control API
KINDS = (
    "scheduled",
    "seen",
    "approved",
    "released",
    "started",
    "changed",
    "finished",
    "cancelled",
    "impact-start",
    "impact-end",
    "removed",
    "incarnation",
    "enabled",
    "approval",
    "approval-refused",
    "rate-limit",
    "unknown-client",
    "notification",
    "notification-handshake",
    "impact-command",
    "refusing",
    "cannot-listen",
    "listening-again",
    "fault-injected",
    "faults-cleared",
    "knobs",
    "advanced",
    "disabled",
    "note",
)
# members of a line whose values need no name in its text
_PLAIN = frozenset(
    ("event", "type", "status", "why", "note", "kind", "new", "refused", "not_before", "hint", "set", "address")
)
_LEFT_OUT = frozenset(("vm", "resources", "number", "time", "what", "id", "ids", "scope", "faults", "notification"))


class RequestEntry(NamedTuple):
    """One request to the simulated IMDS; ``moment`` is a time of the simulator's clock in seconds."""

    number: int
    moment: float
    vm: str
    method: str
    route: str
    version: str
    status: int
    fault: str
    address: str


class ActivityLog:
    """The log: three ring buffers and counts.

    ``lines`` are events, approvals and control requests; ``seen`` are the lines about VMs that received an
    event for the first time; ``requests`` are the requests to IMDS.
    """

    def __init__(self) -> None:
        self.lines: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self.seen: deque[dict[str, Any]] = deque(maxlen=MAX_SEEN)
        self.requests: deque[RequestEntry] = deque(maxlen=MAX_REQUESTS)
        self.counts: Counter[tuple[str, str, str, int]] = Counter()
        self._line_number = 0
        self._request_number = 0

    def add_line(self, moment: float, what: str, **fields: Any) -> dict[str, Any]:
        """Add a line and return it; raise ValueError unless ``what`` is one of KINDS."""
        if what not in KINDS:
            raise ValueError(f"{what}: not a kind of lines; add it to KINDS")
        self._line_number += 1
        line = {"number": self._line_number, "time": iso(moment), "what": what, **fields}
        (self.seen if what == SEEN else self.lines).append(line)
        return line

    def add_request(
        self, moment: float, vm: str, method: str, route: str, version: str, status: int, fault: str, address: str
    ) -> None:
        """Add one request. ``status`` is 0 when the client got no complete answer."""
        self._request_number += 1
        entry = RequestEntry(self._request_number, moment, vm, method, route, version, status, fault, address)
        self.requests.append(entry)
        self.counts[vm, method, route, status] += 1

    def lines_after(self, number: int, what: str | None) -> list[dict[str, Any]]:
        """Return the lines after line ``number``, only those with this ``what`` unless it is None."""
        # from the newest one on: the page asks each second for a few new ones of thousands
        newest = (takewhile(lambda line: line["number"] > number, reversed(ring)) for ring in (self.lines, self.seen))
        found = [line for lines in newest for line in lines if what in (None, line["what"])]
        return sorted(found, key=lambda line: line["number"])

    def requests_after(self, number: int) -> list[RequestEntry]:
        """Return the requests after request ``number``."""
        return [*takewhile(lambda each: each.number > number, reversed(self.requests))][::-1]

    def request_counts(self) -> list[dict[str, Any]]:
        """Return the numbers of requests since the start, by VM, method, route and status."""
        return [
            {"vm": vm, "method": method, "route": route, "status": status, "count": count}
            for (vm, method, route, status), count in sorted(self.counts.items())
        ]

    def dropped(self) -> dict[str, int]:
        """Return how many older lines and requests were dropped."""
        return {
            "lines": self._line_number - len(self.lines) - len(self.seen),
            "requests": self._request_number - len(self.requests),
        }


def line_text(line: Mapping[str, Any], vms: Container[str]) -> str:
    """Return a line without its time: the VM or VMs (``-``: none), what, detail; ``vms`` are the names of all VMs."""
    by = line.get("by", "")
    vm = line.get("vm") or (by if by in vms else _text(line.get("resources") or "-"))
    left_out = {*_LEFT_OUT, "by" if by == vm else "", "group" if vm != "-" else ""}
    details = [
        _text(value) if name in _PLAIN else f"{name}={_text(value)}"
        for name, value in line.items()
        if name not in left_out and value not in (None, "", [])
    ]
    return " ".join([vm, line["what"], *details])


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
