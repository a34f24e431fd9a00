# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from support.ready_hooks.web_server import Answer, Request, WebServer


class ScriptedImds(WebServer):
    """An IMDS with answers that a test sets, which Azure can give and the simulator cannot."""

    def __init__(self, name: str = "vm1") -> None:
        super().__init__()
        self.otherwise = self._answer
        self.endpoint = self.url
        # None: requests for the instance metadata fail
        self.name: str | None = name
        # the error that they fail with
        self.error = ""
        self.events: list[dict[str, Any]] = []
        self.next: list[list[dict[str, Any]]] = []
        self.asked = 0
        self.approved: list[str] = []
        # done before each answer
        self.before_answer: Callable[[], object] = lambda: None
        # status of the answers to approvals
        self.refuses = 200

    def _answer(self, request: Request) -> Answer:
        self.before_answer()
        if request.method == "POST":
            self.approved += [one["EventId"] for one in request.json["StartRequests"]]
            return as_json(self.refuses, {"error": "refused"} if self.refuses != 200 else {})
        if "/instance" in request.target:
            return as_json(500 if self.name is None else 200, {"compute": {"name": self.name}, "error": self.error})
        self.asked += 1
        if self.next:
            self.events = self.next.pop(0)
        return as_json(200, {"DocumentIncarnation": 1, "Events": self.events})

    @staticmethod
    def event(event_id: str, *resources: str, kind: str = "Freeze", status: str = "Scheduled") -> dict[str, Any]:
        listed = {
            "EventId": event_id,
            "EventType": kind,
            "EventStatus": status,
            "ResourceType": "VirtualMachine",
            "NotBefore": "",
            "EventSource": "Platform",
        }
        return dict(listed, Resources=list(resources)) if resources else listed


def as_json(status: int, content: Any) -> Answer:
    return Answer(status, json.dumps(content).encode(), {"Content-Type": "application/json"})
