# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts simulators on this machine for tests that run in the Windows Python.

A program under Wine must not start programs of Linux. It sends a request to the broker instead, which is a
small HTTP server on loopback. `remote_simulator` is the other side.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support import simulator_process
from support.simulator_process import Simulator

ADDRESS_VARIABLE = "SIMULATOR_BROKER"


class Broker(ThreadingHTTPServer):
    """POST /start takes the arguments of `simulator_process.start`; POST /stop takes a number and a signal."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.running: list[Simulator] = []
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        """The URL of the broker."""
        return f"http://127.0.0.1:{self.server_port}"

    def start(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Start a simulator, and return its number, addresses and token."""
        simulator = simulator_process.start(**arguments)
        with self.lock:
            self.running.append(simulator)
            number = len(self.running) - 1
        return {
            "number": number,
            "control": simulator.control,
            "token": simulator.token,
            "endpoints": simulator.endpoints,
        }

    def stop(self, arguments: dict[str, Any]) -> int | None:
        """End a simulator, and return its exit code."""
        simulator: Simulator = self.running[arguments["number"]]
        return simulator.stop(arguments["how"])


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        broker = self.server
        assert isinstance(broker, Broker)
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        actions: dict[str, Callable[[dict[str, Any]], Any]] = {"/start": broker.start, "/stop": broker.stop}
        try:
            answer = actions[self.path](arguments)
        except Exception as error:
            self._send(500, f"{type(error).__name__}: {error}")
        else:
            self._send(200, answer)

    def _send(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the log of the session short."""


@contextlib.contextmanager
def simulator_broker() -> Iterator[str]:
    """Run a broker during the block, and yield its URL; afterwards end its simulators."""
    with Broker() as broker:
        threading.Thread(target=broker.serve_forever, daemon=True).start()
        try:
            yield broker.address
        finally:
            broker.shutdown()
            for simulator in broker.running:
                simulator.stop()
