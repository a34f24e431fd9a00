# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A Galaxy server with one release of this collection, for `ansible-galaxy collection install`."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COLLECTION = "/api/v3/collections/azure_imds/scheduled_events/"


@contextmanager
def serve_galaxy(archive: Path) -> Iterator[str]:
    """Serve this archive as a release, and yield the URL of the API."""
    version = archive.name.removesuffix(".tar.gz").rpartition("-")[2]
    content = archive.read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            response = content if path == f"/{archive.name}" else pages.get(path)
            body = response if isinstance(response, bytes) else json.dumps(response).encode()
            self.send_response(404 if response is None else 200)
            self.send_header("Content-Type", "application/gzip" if isinstance(response, bytes) else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        release: dict[str, Any] = {
            "version": version,
            "href": f"{COLLECTION}versions/{version}/",
            "namespace": {"name": "azure_imds"},
            "collection": {"name": "scheduled_events"},
            "download_url": f"{url}/{archive.name}",
            "artifact": {"filename": archive.name, "sha256": hashlib.sha256(content).hexdigest()},
            "metadata": {"dependencies": {}},
            "signatures": [],
        }
        pages: dict[str, Any] = {
            "/api/": {"available_versions": {"v3": "v3/"}},
            COLLECTION: {"updated_at": "2026-11-21T10:00:00Z"},
            COLLECTION + "versions/": {"meta": {"count": 1}, "links": {"next": None}, "data": [{"version": version}]},
            release["href"]: release,
        }
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"{url}/api/"
        finally:
            server.shutdown()
