# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One simulator for all tests of a file; every test starts without events and faults."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Iterator

import pytest
import simulator_process
from simulator_process import Simulator

TWO_VMS = {
    "groups": {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}},
    "knobs": {"rate_limit": 0},
}


@pytest.fixture(scope="module")
def service() -> Iterator[Simulator]:
    with simulator_process.start(TWO_VMS) as running:
        yield running


@pytest.fixture
def azure(service: Simulator) -> Iterator[Simulator]:
    """The simulator, without leftovers of an earlier test."""
    yield service
    service.delete("/faults")
    for event in service.get("/events")["events"]:
        if event["status"] in ("Scheduled", "Started") and event["gone_at"] is None:
            service.post("/events/%s/%s" % (event["id"], "cancel" if event["status"] == "Scheduled" else "complete"))


@pytest.fixture
def endpoint(azure: Simulator) -> str:
    return azure.endpoints["vm1"]


def schedule(azure: Simulator, **event: Any) -> str:
    """Schedule an event, a Reboot of vm1 unless said otherwise; its id."""
    answer = azure.post("/events", {"type": "Reboot", "resources": ["vm1"], **event})
    return str(answer["id"])


def fault(azure: Simulator, kind: str, **options: Any) -> None:
    azure.post("/faults", {"kind": kind, **options})


def asked(azure: Simulator, vm: str = "vm1") -> list[dict[str, Any]]:
    """All requests of a VM so far, oldest first."""
    requests: list[dict[str, Any]] = azure.get("/requests?vm=%s" % vm)["requests"]
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
        yield "http://127.0.0.1:%d" % server.getsockname()[1], heard
        thread.join(5)
