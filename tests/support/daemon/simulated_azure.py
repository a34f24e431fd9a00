# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One test's view of the shared simulator: only its own events, requests and approvals."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

from support.simulator_process import Simulator

GROUPS: dict[str, Any] = {
    "web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}, "vm3": {}}},
    "pool": {"kind": "scale_set", "vms": {"pool_1": {}, "pool_2": {}}},
}


class Azure:
    """Schedules events and returns the requests of clients. Its clock does not move until `advance`."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self._lines = max([line["number"] for line in simulator.get("/log")["lines"]], default=0)
        self._requests = max([request["number"] for request in simulator.get("/requests")["requests"]], default=0)

    def schedule(self, kind: str = "Freeze", *resources: str, **rest: Any) -> str:
        """Schedule an event, by default for vm1, and return its EventId."""
        data = {"type": kind, "resources": list(resources or ("vm1",)), **rest}
        event_id: str = self.simulator.post("/events", data)["id"]
        return event_id

    def change(self, event_id: str, **edit: Any) -> None:
        self.simulator.post(f"/events/{event_id}/change", edit)

    def cancel(self, event_id: str) -> None:
        self.simulator.post(f"/events/{event_id}/cancel")

    def complete(self, event_id: str) -> None:
        self.simulator.post(f"/events/{event_id}/complete")

    def approve(self, event_id: str, who: str = "control-plane") -> None:
        self.simulator.post(f"/events/{event_id}/approve", {"as": who})

    def status(self, event_id: str) -> str:
        text: str = self.simulator.get(f"/events/{event_id}")["status"]
        return text

    def fault(self, kind: str, **rest: Any) -> None:
        self.simulator.post("/faults", {"kind": kind, **rest})

    def show(self, *entries: dict[str, Any], **members: Any) -> None:
        """Answer with a document of these entries until `heal`."""
        self.heal()
        self.fault(
            "body",
            body=json.dumps({"DocumentIncarnation": 7, "Events": list(entries), **members}),
            method="GET",
            route="scheduledevents",
        )

    def entry(self, **members: Any) -> dict[str, Any]:
        """Return an entry for `show`, without members that are None."""
        usual = {
            "EventId": "0F6DB1C4-11C2-4B7A-9D9B-6A8E6D8E0001",
            "EventStatus": "Scheduled",
            "EventType": "Reboot",
            "ResourceType": "VirtualMachine",
            "Resources": ["vm1"],
            "NotBefore": format_datetime(self.now() + timedelta(seconds=900), usegmt=True),
            "Description": "",
            "EventSource": "Platform",
            "DurationInSeconds": -1,
        }
        return {name: value for name, value in {**usual, **members}.items() if value is not None}

    def heal(self) -> None:
        self.simulator.delete("/faults")

    def advance(self, seconds: float) -> None:
        self.simulator.advance(seconds)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.simulator.get("/state")["unix"], timezone.utc)

    def log(self, what: str) -> list[dict[str, Any]]:
        """Return the log entries of one kind since the start of this test."""
        lines: list[dict[str, Any]] = self.simulator.get(f"/log?what={what}&after={self._lines}")["lines"]
        return lines

    def approvals(self) -> list[tuple[str, str]]:
        """Return (VM, EventId) of every accepted approval, including repeats."""
        return [
            (line["vm"], event_id) for line in self.log("approval") if line["status"] == 200 for event_id in line["ids"]
        ]

    def starts(self, event_id: str) -> int:
        """Return how often the event started; more than once is an error."""
        return len([line for line in self.log("started") if line["id"] == event_id])

    def requests(self, method: str, route: str = "scheduledevents") -> list[dict[str, Any]]:
        found = self.simulator.get(f"/requests?after={self._requests}")["requests"]
        return [request for request in found if (request["method"], request["route"]) == (method, route)]


def clean(simulator: Simulator, knobs: dict[str, Any]) -> None:
    """End all events and faults of an earlier test, and reset its knobs."""
    simulator.delete("/faults")
    for event in simulator.get("/events")["events"]:
        if event["status"] != "Gone":
            # an event that has not appeared yet can only be cancelled
            verb = "complete" if event["status"] in ("Scheduled", "Started") else "cancel"
            simulator.post(f"/events/{event['id']}/{verb}")
    if simulator.get("/knobs") != knobs:
        simulator.post("/knobs", knobs)
