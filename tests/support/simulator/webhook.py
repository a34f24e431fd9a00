# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A web hook over real HTTP that keeps the notifications of the simulator."""

from __future__ import annotations

import json
import threading
from email.message import Message
from typing import Any, NamedTuple

from support.salt.http_server import HttpServer, QuietHandler
from support.wait import wait_until


class Received(NamedTuple):
    method: str
    path: str
    headers: Message
    body: Any

    @property
    def notification(self) -> dict[str, Any]:
        """The notification in either schema."""
        notification: dict[str, Any] = self.body[0] if isinstance(self.body, list) else self.body
        return notification

    @property
    def properties(self) -> dict[str, Any]:
        """The members of the event."""
        properties: dict[str, Any] = self.notification["data"]["resourceInfo"]["properties"]
        return properties


class Webhook(HttpServer):
    """A web hook.

    ``statuses`` are the statuses of the next answers; after them it answers 200. ``returns_code``: it
    passes the handshake of Event Grid; ``allowed_origin``: that of CloudEvents. ``rest``: the answers are
    sent in two parts, the second one when it is set; ``has_begun`` is set after the first part.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.statuses: list[int] = []
        self.returns_code = False
        self.allowed_origin = ""
        self.rest: threading.Event | None = None
        self.has_begun = threading.Event()
        hook = self

        class Handler(QuietHandler):
            def answer(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body: Any = json.loads(data) if data else None
                hook.received.append(Received(self.command, self.path, self.headers, body))
                status = hook.statuses.pop(0) if hook.statuses else 200
                answer = b""
                if hook.returns_code and self.headers["aeg-event-type"] == "SubscriptionValidation":
                    answer = json.dumps({"validationResponse": body[0]["data"]["validationCode"]}).encode()
                self.send_response(status)
                if hook.allowed_origin:
                    self.send_header("WebHook-Allowed-Origin", hook.allowed_origin)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                if hook.rest is not None:
                    self.wfile.write(answer[:5])
                    hook.has_begun.set()
                    hook.rest.wait(60)
                    answer = answer[5:]
                self.wfile.write(answer)

            do_POST = do_OPTIONS = answer

        super().__init__(Handler)
        self.url = self.address + "/endpoint"

    def wait_for(self, count: int) -> list[Received]:
        """Return the requests when there are ``count`` of them or more."""
        wait_until(lambda: len(self.received) >= count, lambda: f"{count} requests, got {self.received}")
        return list(self.received)
