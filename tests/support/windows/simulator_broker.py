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
from typing import Any

from support import simulator_process
from support.ready_hooks.web_server import Answer, Request, WebServer
from support.simulator_process import Simulator

ADDRESS_VARIABLE = "SIMULATOR_BROKER"


class Broker:
    """POST /start takes the arguments of `simulator_process.start`; POST /stop takes a number and a signal."""

    def __init__(self) -> None:
        self.running: list[Simulator] = []
        self.lock = threading.Lock()

    def answer(self, request: Request) -> Answer:
        actions: dict[str, Callable[[dict[str, Any]], Any]] = {"/start": self.start, "/stop": self.stop}
        try:
            return Answer(200, json.dumps(actions[request.target](request.json)).encode())
        except Exception as error:
            return Answer(500, json.dumps(f"{type(error).__name__}: {error}").encode())

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


@contextlib.contextmanager
def simulator_broker() -> Iterator[str]:
    """Run a broker during the block, and yield its URL; afterwards end its simulators."""
    broker = Broker()
    try:
        with WebServer() as server:
            server.otherwise = broker.answer
            yield server.url
    finally:
        for simulator in broker.running:
            simulator.stop()
