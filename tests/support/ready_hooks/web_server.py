# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An HTTP or HTTPS server on the bridge of the hosts, which answers as a test says and keeps the requests."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    """One request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Answer(NamedTuple):
    """One answer; `pause` is seconds between the bytes of its body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    pause: float = 0.0


class WebServer:
    """Serves at an IP address while its context is open.

    ``context`` is that of TLS; without it, the server speaks plain HTTP.

    Attributes:
        answers: those to the next requests, in their order.
        otherwise: returns the answer to any further request.
    """

    def __init__(self, address: str, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] = []
        self.otherwise: Callable[[Request], Answer] = lambda _request: Answer()
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer((address, 0), _handler(self))
        if context is not None:
            # each handshake in the thread of its connection: a client that sends nothing delays no other one
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port: int = self._server.server_port
        self.url = f"{'https' if context else 'http'}://{address}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> WebServer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def hang(self, _request: Request) -> Answer:
        """Answer only when the server closes."""
        self.closing.wait(120)
        return Answer(503)


def _handler(server: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 120

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, dict(self.headers), body)
            server.requests.append(request)
            answer = server.answers.pop(0) if server.answers else server.otherwise(request)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            for part in [bytes([byte]) for byte in answer.body] if answer.pause else [answer.body]:
                self.wfile.write(part)
                self.wfile.flush()
                server.closing.wait(answer.pause)

        do_GET = do_POST = do_PATCH = do_any

        def log_message(self, *_arguments: Any) -> None:
            pass

    return Handler
