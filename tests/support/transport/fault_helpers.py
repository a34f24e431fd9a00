# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the transport tests do to Azure: schedule, make faulty, ask who asked; and a server of raw bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

from support.simulator_process import Simulator


def schedule(azure: Simulator, **event: Any) -> str:
    """Schedule an event, a Reboot of vm1 unless said otherwise; its id."""
    answer = azure.post("/events", {"type": "Reboot", "resources": ["vm1"], **event})
    return str(answer["id"])


def fault(azure: Simulator, kind: str, **options: Any) -> None:
    azure.post("/faults", {"kind": kind, **options})


def asked(azure: Simulator, vm: str = "vm1") -> list[dict[str, Any]]:
    """All requests of a VM so far, oldest first."""
    requests: list[dict[str, Any]] = azure.get(f"/requests?vm={vm}")["requests"]
    return requests


@contextlib.contextmanager
def raw_server(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives one answer of these very bytes and closes: (endpoint, what it heard)."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _address = server.accept()
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
        thread.join(60)
