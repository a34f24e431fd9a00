# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A ThreadingHTTPServer that answers all requests with the same bytes.

    python tests/bench/canned_server.py

Prints its port. The simulator is compared with it.
"""

from __future__ import annotations

import http.server
import json

BODY = json.dumps(
    {
        "DocumentIncarnation": 2,
        "Events": [
            {
                "EventId": "5EED0000-0000-4000-8000-000000000001",
                "EventStatus": "Scheduled",
                "EventType": "Freeze",
                "ResourceType": "VirtualMachine",
                "Resources": ["vm0"],
                "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
                "Description": "Host server is undergoing maintenance.",
                "EventSource": "Platform",
                "DurationInSeconds": 9,
            }
        ],
    },
    separators=(",", ":"),
).encode()


class Canned(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 2048
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canned)
    print(server.server_address[1], flush=True)
    server.serve_forever()
