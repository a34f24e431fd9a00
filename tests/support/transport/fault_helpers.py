# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events, faults and requests of the simulator for the transport tests, and a server of raw bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

from support.simulator_process import Simulator


def schedule(azure: Simulator, **event: Any) -> str:
    """Schedule an event, by default a Reboot of vm1, and return its id."""
    answer = azure.post("/events", {"type": "Reboot", "resources": ["vm1"], **event})
    return str(answer["id"])


def fault(azure: Simulator, kind: str, **options: Any) -> None:
    azure.post("/faults", {"kind": kind, **options})


def requests_of(azure: Simulator, vm: str = "vm1") -> list[dict[str, Any]]:
    """Return all requests of a VM so far, oldest first."""
    requests: list[dict[str, Any]] = azure.get(f"/requests?vm={vm}")["requests"]
    return requests


@contextlib.contextmanager
def raw_server(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server that sends these bytes once and closes; yield its endpoint and the received requests."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _address = server.accept()
            with connection:
                received.append(connection.recv(65536))
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", received
        thread.join(60)
