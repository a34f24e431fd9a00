# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A web hook whose requests a test reads."""

from __future__ import annotations

import json
from typing import Any

from support.salt.http_server import HttpServer, QuietHandler
from support.wait import wait_until


class Hook(HttpServer):
    def __init__(self) -> None:
        self.posts: list[tuple[str, dict[str, Any]]] = []
        hook = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.posts.append((self.path, json.loads(body)))
                self.send_response(200)
                self.end_headers()

        super().__init__(Handler)

    def wait(self, path: str, **fields: Any) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [body for where, body in self.posts if where == path and fields.items() <= body.items()]

        return wait_until(found, lambda: f"{fields} at {path}, which got {self.posts}")[0]
