# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events, faults and requests of the simulator for the transport tests."""

from __future__ import annotations

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
