# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The HTTP server of the metrics. Any local user may connect: few connections at a time, each for a short time."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

# threads that answer; further connections wait until the kernel refuses them
_MOST_CONNECTIONS = 4
# seconds for the request and the answer together
_CONNECTION_LIMIT = 5.0


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a line for each request would fill the log."""


class _Server(WSGIServer):
    def finish_request(self, request: Any, client_address: Any) -> None:
        limit = threading.Timer(_CONNECTION_LIMIT, _disconnect, (request,))
        limit.daemon = True
        limit.start()
        try:
            super().finish_request(request, client_address)
        finally:
            limit.cancel()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: the client has disconnected, or its time was over."""


class _ServerV6(_Server):
    address_family = socket.AF_INET6


def serve(address: str, app: Any) -> None:
    """Answer HTTP requests in threads from now on, by the WSGI application `app`.

    The address is an IP address and a port, such as 127.0.0.1:9758 or [::1]:9758. Raises OSError if it is not
    available.
    """
    host, _colon, port = address.rpartition(":")
    server = make_server(host.strip("[]"), int(port), app, _ServerV6 if ":" in host else _Server, _Handler)
    for _number in range(_MOST_CONNECTIONS):
        threading.Thread(target=_answer, args=(server,), name="metrics", daemon=True).start()


def _answer(server: WSGIServer) -> None:
    while True:
        server.handle_request()


def _disconnect(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
