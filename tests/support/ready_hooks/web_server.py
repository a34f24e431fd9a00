# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An HTTP or HTTPS server on the bridge of the hosts, which answers as a test says and keeps the requests."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar

Self = TypeVar("Self", bound="WebServer")


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
    """

    def __init__(self, address: str, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        # for the next requests, in their order; then `otherwise`
        self.answers: list[Answer | Callable[[Request], Answer]] = []
        self.otherwise: Callable[[Request], Answer] = lambda _request: Answer()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server((address, 0), _handler(self), context)
        scheme = "https" if context else "http"
        self.port: int = self._server.server_port
        self.url = f"{scheme}://{address}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self: Self) -> Self:
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

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request; the handler calls it."""
        with self._lock:
            self.requests.append(request)
            chosen = self.answers.pop(0) if self.answers else self.otherwise
        return chosen if isinstance(chosen, Answer) else chosen(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None
    ) -> None:
        super().__init__(address, handler)
        self._context = context

    def finish_request(self, request: Any, client_address: Any) -> None:
        # in the thread of the connection: a client that sends nothing delays no other one
        connection: socket.socket = request
        connection.settimeout(120)
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            super().finish_request(connection, client_address)
        except OSError:
            pass  # the client does not trust the certificate, or has gone
        finally:
            connection.close()


def _handler(server: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = server.answer(Request(self.command, self.path, dict(self.headers), body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            for part in _parts(answer):
                self.wfile.write(part)
                self.wfile.flush()
                server.closing.wait(answer.pause)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_any

        def log_message(self, *_arguments: Any) -> None:
            pass

    return Handler


def _parts(answer: Answer) -> list[bytes]:
    return [bytes([byte]) for byte in answer.body] if answer.pause else [answer.body]
