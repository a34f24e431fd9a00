# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulator of the broker, for a test in the Windows Python."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from typing import Any

from support.simulator_process import Simulator

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class RemoteSimulator(Simulator):
    """A simulator whose process is that of the broker."""

    def __init__(self, broker: str, started: dict[str, Any]) -> None:
        self.broker = broker
        self.number: int = started["number"]
        self.control = started["control"]
        self.token = started["token"]
        self.endpoints = started["endpoints"]
        self.output = []

    def stop(self, how: int = signal.SIGTERM) -> int | None:
        code: int | None = post(self.broker, "/stop", {"number": self.number, "how": int(how)})
        return code


def start_remotely(**arguments: Any) -> RemoteSimulator:
    """Have the broker start a simulator; the arguments are those of `simulator_process.start`.

    Raises:
        RuntimeError: there is no broker, or it cannot start the simulator.
    """
    broker = os.environ.get("SIMULATOR_BROKER")
    if not broker:
        raise RuntimeError("SIMULATOR_BROKER: not set; `make windows` sets it")
    return RemoteSimulator(broker, post(broker, "/start", arguments))


def post(broker: str, path: str, arguments: dict[str, Any]) -> Any:
    request = urllib.request.Request(broker + path, json.dumps(arguments).encode(), method="POST")
    try:
        with DIRECT.open(request, timeout=120) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"the broker answered: {error.read().decode(errors='replace')}") from error
