# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The web service of the demonstration, which runs on the hosts web1 to web3.

    python3 web_service.py NAME DATABASES SECONDS

POST /orders/ID writes a row, commits, reads it again, and answers with the ID. Where the database
cannot be reached, or is not the primary any more, the service repeats the transaction on a new
connection for SECONDS. The ID is the key of the row: therefore a repeated write writes it once.
"""

from __future__ import annotations

import contextlib
import http.server
import queue
import sys
import threading
import time
from typing import Any

import psycopg2  # type: ignore[import-untyped]  # of the host's Debian
import psycopg2.errors  # type: ignore[import-untyped]

PORT = 8080
PAUSE = 0.25
MOST_CONNECTIONS = 8
# libpq tries the hosts in their order until one accepts writes
CONNECTION = "host={} user=shop dbname=shop target_session_attrs=read-write connect_timeout=2"
WRITE = "INSERT INTO orders (id, web) VALUES (%s, %s) ON CONFLICT (id) DO NOTHING"
READ = "SELECT id FROM orders WHERE id = %s"
LOST = (psycopg2.OperationalError, psycopg2.InterfaceError, psycopg2.errors.ReadOnlySqlTransaction)


class Database:
    """Connections to the primary, which requests share one at a time."""

    def __init__(self, hosts: str, seconds: float) -> None:
        self._conninfo, self._seconds = CONNECTION.format(hosts), seconds
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue()
        self._turn = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def order(self, order: str, web: str) -> str:
        """Write the order, and return its ID as it was read. Raises an error of psycopg2."""
        end = time.monotonic() + self._seconds
        while True:
            if not self._turn.acquire(timeout=max(0.0, end - time.monotonic())):
                raise psycopg2.OperationalError("no free connection in time")
            try:
                return self._try_order(order, web)
            except LOST:
                if time.monotonic() > end:
                    raise
                time.sleep(PAUSE)
            finally:
                self._turn.release()

    def _try_order(self, order: str, web: str) -> str:
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = psycopg2.connect(self._conninfo)
        try:
            with connection.cursor() as cursor:
                cursor.execute(WRITE, (order, web))
                connection.commit()
                cursor.execute(READ, (order,))
                found = cursor.fetchone()
                connection.commit()
        except LOST:
            with contextlib.suppress(psycopg2.Error):
                connection.close()
            raise
        self._idle.put(connection)
        return str(found[0])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    database: Database
    web = ""

    def do_GET(self) -> None:
        self._answer(200, "alive")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            self._answer(200, self.database.order(self.path.rpartition("/")[2], self.web))
        except psycopg2.Error as error:
            self._answer(500, str(error))

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


def main() -> None:
    Handler.web, hosts, seconds = sys.argv[1:]
    Handler.database = Database(hosts, float(seconds))
    Server(("", PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()
