# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
from typing import Any

from support.salt.http_server import HttpServer, QuietHandler


class ScriptedImds(HttpServer):
    """An IMDS with answers that a test sets, which Azure can give and the simulator cannot."""

    def __init__(self, name: str = "vm1") -> None:
        # None: requests for the instance metadata fail
        self.name: str | None = name
        # the error that they fail with
        self.error = ""
        self.events: list[dict[str, Any]] = []
        self.next: list[list[dict[str, Any]]] = []
        self.asked = 0
        self.approved: list[str] = []
        # status of the answers to approvals
        self.refuses = 200
        script = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                if "/instance" in self.path:
                    self.answer(
                        500 if script.name is None else 200, {"compute": {"name": script.name}, "error": script.error}
                    )
                    return
                script.asked += 1
                if script.next:
                    script.events = script.next.pop(0)
                self.answer(200, {"DocumentIncarnation": 1, "Events": script.events})

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                script.approved += [one["EventId"] for one in request["StartRequests"]]
                self.answer(script.refuses, {"error": "refused"} if script.refuses != 200 else {})

        super().__init__(Handler)
        self.endpoint = self.address

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
