# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An HTTP endpoint that records what is pushed to it, and answers by a script."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
import time
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


class Reaction(NamedTuple):
    """The answer to one request: status, header lines, and the seconds before each byte of it (0: at once)."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    drip: float = 0.0


class PushEndpoint:
    """The endpoint. Each request takes one of `reactions`; the last one is repeated.

    Attributes:
        url: its address.
        requests: all requests, in order.
        taken: the requests that were answered with 2xx.
    """

    def __init__(self, context: ssl.SSLContext | None, host: str, port: int) -> None:
        self.reactions = [Reaction()]
        self.requests: list[Pushed] = []
        self.taken: list[Pushed] = []
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Pushed(self.path, headers, body)
                reaction = endpoint.reactions.pop(0) if len(endpoint.reactions) > 1 else endpoint.reactions[0]
                endpoint.requests.append(request)
                if 200 <= reaction.status < 300:
                    endpoint.taken.append(request)
                lines = [f"HTTP/1.1 {reaction.status} X", *(f"{name}: {value}" for name, value in reaction.headers)]
                answer = "\r\n".join([*lines, "Content-Length: 0", "", ""]).encode("ascii")
                with contextlib.suppress(OSError):
                    if not reaction.drip:
                        self.wfile.write(answer)
                    for byte in answer if reaction.drip else b"":
                        self.wfile.write(bytes([byte]))
                        time.sleep(reaction.drip)
                self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that refuses the certificate

        self.server = Server((host, port), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self.server.server_address[1]
        self.url = f"{'http' if context is None else 'https'}://{host}:{self.port}/endpoint"

    def changes(self) -> list[tuple[str, str]]:
        """Return (change, status of the event) of all that was taken, in order."""
        return [(each.change["change"], each.change["event"]["status"]) for each in self.taken]


@contextlib.contextmanager
def push_endpoint(
    *reactions: Reaction, context: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
) -> Iterator[PushEndpoint]:
    """Run such an endpoint during the block; ``context``: for https."""
    endpoint = PushEndpoint(context, host, port)
    endpoint.reactions = list(reactions) or endpoint.reactions
    thread = threading.Thread(target=lambda: endpoint.server.serve_forever(0.05), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join(60)
