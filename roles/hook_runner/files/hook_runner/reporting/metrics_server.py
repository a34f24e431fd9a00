# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The HTTP server of the metrics. Any local user may connect: few connections at a time, each for a short time."""

from __future__ import annotations

import contextlib
import io
import socket
import socketserver
import threading
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

# a further connection takes the place of the oldest one
_MOST_CONNECTIONS = 32
# connections that the kernel keeps until they are accepted
_MOST_WAITING = 64
# seconds for the request and the answer together
CONNECTION_LIMIT = 5.0
# seconds between two looks of serve_forever() for its end, which never comes
_INTERVAL = 3600.0


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a line for each request would fill the log."""

    def get_stderr(self) -> Any:
        """Drop the error of a request that the library cannot answer: its traceback would fill the log."""
        return io.StringIO()


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = _MOST_WAITING

    def __init__(self, address: Any, handler: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        # the oldest first
        self._connections: list[socket.socket] = []
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind as HTTPServer does, but do not ask DNS for the name of the address: an answer may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        for connection in self._connections[: 1 - _MOST_CONNECTIONS]:
            _disconnect(connection)
        self._connections.append(request)
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        limit = threading.Timer(CONNECTION_LIMIT, _disconnect, (request,))
        limit.daemon = True
        limit.start()
        try:
            super().finish_request(request, client_address)
        finally:
            limit.cancel()

    def shutdown_request(self, request: Any) -> None:
        self._connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: the client has disconnected, or its time was over."""


def serve(address: str, app: Any) -> None:
    """Answer HTTP requests in threads from now on, by the WSGI application `app`.

    The address is an IP address and a port, such as 127.0.0.1:9758 or [::1]:9758. Raises OSError if it is not
    available.
    """
    host, _colon, port = address.rpartition(":")
    server = make_server(host.strip("[]"), int(port), app, _Server, _Handler)
    threading.Thread(target=server.serve_forever, args=(_INTERVAL,), name="metrics", daemon=True).start()


def _disconnect(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
