# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An HTTP server on loopback for the built site."""

from __future__ import annotations

import contextlib
import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder while the block runs, and give its address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with QuietServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class QuietServer(http.server.ThreadingHTTPServer):
    """A server that prints no error when a browser closes a connection, as it does when it leaves a page."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Print the error, except that of a closed connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """A handler that prints nothing."""

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""
