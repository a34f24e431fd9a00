# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulated Azure whose clock only a test moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support import simulator_process
from support.simulator_process import Simulator
from support.wait import wait_until

# of an event in the answers of functions, on the bus and in pushes
MEMBERS = {
    "event_id",
    "event_type",
    "status",
    "resources",
    "resource_type",
    "not_before",
    "description",
    "source",
    "duration_seconds",
}


class Azure:
    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.endpoints = simulator.endpoints

    def announce(self, *resources: str, kind: str = "Reboot", **more: Any) -> str:
        """Schedule an event now; returns its EventId."""
        event_id: str = self.simulator.post("/events", {"type": kind, "resources": list(resources), **more})["id"]
        return event_id

    def start(self, event_id: str) -> None:
        """Start an event as at its NotBefore, without going on to its end."""
        self.simulator.post(f"/events/{event_id}/approve", {"as": "control-plane"})
        self.simulator.advance(2)
        assert self.simulator.get(f"/events/{event_id}")["status"] == "Started"

    def end(self, event_id: str) -> None:
        self.simulator.post(f"/events/{event_id}/complete")

    def end_all(self) -> None:
        for event in self.simulator.get("/events")["events"]:
            if event["status"] in ("Scheduled", "Started"):
                self.end(event["id"])

    def cancel(self, event_id: str) -> None:
        self.simulator.post(f"/events/{event_id}/cancel")

    def change(self, event_id: str, **changes: Any) -> None:
        """Edit an event, as a scenario does."""
        self.simulator.post(f"/events/{event_id}/change", changes)

    def approvals(self, event_id: str) -> list[str]:
        """Return the VM of each approval of this event."""
        return [
            line["vm"] for line in self.simulator.get("/log?what=approval")["lines"] if event_id in line.get("ids", ())
        ]

    @contextmanager
    def fault(self, kind: str, vm: str) -> Iterator[None]:
        """Have IMDS fail for one VM; the block begins after the first failed request."""
        with failing(self, kind, vm=vm) as fault:

            def seen() -> bool:
                faults = self.simulator.get("/faults")["faults"]
                return any(entry["number"] == fault and entry["seen"].get(vm, 0) for entry in faults)

            wait_until(seen, f"a request of {vm} that meets the fault")
            yield

    def requests(self, vm: str) -> int:
        """How many requests for events a VM has sent."""
        counts = self.simulator.get("/requests")["counts"]
        return sum(count["count"] for count in counts if (count["vm"], count["route"]) == (vm, "scheduledevents"))

    def wait_for_polls(self, vm: str, more: int = 3) -> None:
        """Wait for this number of further requests of a VM."""
        wanted = self.requests(vm) + more
        wait_until(lambda: self.requests(vm) >= wanted, f"{more} polls of {vm}")


@contextmanager
def simulated(groups: dict[str, Any], **scenario: Any) -> Iterator[Azure]:
    with simulator_process.start(
        {"groups": groups, "knobs": {"rate_limit": 0}, **scenario}, args=["--clock", "manual"]
    ) as simulator:
        yield Azure(simulator)


@contextmanager
def failing(azure: Azure, kind: str, vm: str = "vm1", **options: Any) -> Iterator[int]:
    """Have IMDS fail for one VM during the block; yield the number of the fault."""
    fault: int = azure.simulator.post("/faults", {"kind": kind, "vm": vm, **options})["number"]
    try:
        yield fault
    finally:
        azure.simulator.delete(f"/faults/{fault}")
