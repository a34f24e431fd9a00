# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An HTTP or HTTPS server, which answers as a test says and keeps the requests."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar

Self = TypeVar("Self", bound="WebServer")


class Request(NamedTuple):
    """One request as it came."""

    method: str
    target: str
    headers: Message
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


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error of a handler, unless its client has gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class WebServer:
    """Serves at an IP address while its context is open.

    ``context`` is that of TLS; without it, the server speaks plain HTTP.

    Attributes:
        answers: those to the next requests, in their order.
        otherwise: returns the answer to any further request.
    """

    def __init__(self, host: str = "127.0.0.1", context: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.server = _Server((host, port), _handler(self))
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.requests: list[Request] = []
        self.answers: list[Answer] = []
        self.otherwise: Callable[[Request], Answer] = lambda _request: Answer()
        self.closing = threading.Event()
        if context is not None:
            # each handshake in the thread of its connection: a client that sends nothing delays no other one
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port: int = self.server.server_port
        self.url = f"{'https' if context else 'http'}://{host}:{self.port}"

    def __enter__(self: Self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def hang(self, _request: Request) -> Answer:
        """Answer only when the server closes."""
        self.closing.wait(120)
        return Answer(503)


def _handler(server: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 120

        def log_message(self, *args: Any) -> None:
            pass

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, self.headers, body)
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

        do_GET = do_POST = do_PATCH = do_OPTIONS = do_any

    return Handler
