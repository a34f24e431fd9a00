# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A web hook over real HTTP that keeps the notifications of the simulator."""

from __future__ import annotations

import json
from typing import Any

from support.ready_hooks.web_server import Answer, Request, WebServer
from support.wait import wait_until


class Webhook(WebServer):
    """A web hook, which answers 200 unless it has other ``answers``."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1")
        self.url += "/endpoint"

    def wait_for(self, count: int) -> list[Request]:
        """Return the requests when there are ``count`` of them or more."""
        wait_until(lambda: len(self.requests) >= count, lambda: f"{count} requests, got {self.requests}")
        return list(self.requests)


def notification_of(request: Request) -> dict[str, Any]:
    """Return the notification in either schema."""
    notification: dict[str, Any] = request.json[0] if isinstance(request.json, list) else request.json
    return notification


def properties_of(request: Request) -> dict[str, Any]:
    """Return the members of the event."""
    properties: dict[str, Any] = notification_of(request)["data"]["resourceInfo"]["properties"]
    return properties


def with_handshake(request: Request, pause: float = 0.0) -> Answer:
    """Return the answer that passes the handshake of either schema; ``pause``: seconds between its bytes."""
    if request.headers.get("aeg-event-type") != "SubscriptionValidation":
        return Answer(headers={"WebHook-Allowed-Origin": "*"} if request.method == "OPTIONS" else {})
    code = notification_of(request)["data"]["validationCode"]
    return Answer(body=json.dumps({"validationResponse": code}).encode(), pause=pause)
