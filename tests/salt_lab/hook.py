# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A web hook that tests read."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from salt_lab.until import until


class Hook:
    """A web hook that keeps what it gets."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, dict[str, Any]]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.posts.append((self.path, json.loads(body)))
                self.send_response(200)
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.address = "http://127.0.0.1:%d" % self.server.server_port

    def wait(self, path: str, **fields: Any) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [body for where, body in self.posts if where == path and fields.items() <= body.items()]

        return until(found, lambda: "%s at %s, which got %s" % (fields, path, self.posts))[0]

    def __enter__(self) -> Hook:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()
