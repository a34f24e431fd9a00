# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The HTTP server of the metrics. Any local user may connect: few connections at a time, each for a short time."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

_MOST_CONNECTIONS = 4
# seconds for the request and the answer together
_CONNECTION_LIMIT = 5.0


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a line for each request would fill the log."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """Answers each connection in a thread; further connections wait until the kernel refuses them."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self._free = threading.Semaphore(_MOST_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def get_request(self) -> Any:
        self._free.acquire()
        try:
            return super().get_request()
        except OSError:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        limit = threading.Timer(_CONNECTION_LIMIT, _disconnect, (request,))
        limit.daemon = True
        limit.start()
        super().process_request_thread(request, client_address)
        limit.cancel()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection; called once for each."""
        super().shutdown_request(request)
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: the client has disconnected, or its time was over."""


def serve(address: str, app: Any) -> None:
    """Answer HTTP requests in threads from now on, by the WSGI application `app`.

    The address is an IP address and a port, such as 127.0.0.1:9758 or [::1]:9758. Raises OSError if it is not
    available.
    """
    host, _colon, port = address.rpartition(":")
    server = make_server(host.strip("[]"), int(port), app, _Server, _Handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


def _disconnect(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
