# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An HTTP endpoint that records what is pushed to it, and answers by a script."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple


class Pushed(NamedTuple):
    """One request: its path, its headers (names in small letters), and its body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def change(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.body)
        return data


class PushEndpoint:
    """The endpoint. Each request takes one of `statuses`; the last one is repeated.

    Attributes:
        requests: all requests, in order.
        taken: the requests that were answered with 2xx.
    """

    def __init__(self, statuses: tuple[int, ...], port: int) -> None:
        self.statuses = list(statuses) or [200]
        self.requests: list[Pushed] = []
        self.taken: list[Pushed] = []
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Pushed(self.path, headers, body)
                status = endpoint.statuses.pop(0) if len(endpoint.statuses) > 1 else endpoint.statuses[0]
                endpoint.requests.append(request)
                if 200 <= status < 300:
                    endpoint.taken.append(request)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/endpoint"


@contextlib.contextmanager
def push_endpoint(*statuses: int, port: int = 0) -> Iterator[PushEndpoint]:
    """Run an endpoint during the block; ``statuses``: of its answers, by default 200 for all."""
    endpoint = PushEndpoint(statuses, port)
    thread = threading.Thread(target=lambda: endpoint.server.serve_forever(0.05), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join(60)
