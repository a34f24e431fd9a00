# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A backend that lacks a VM of an event, at the daemon's interval."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.daemon.daemon_process import DaemonProcess
from support.daemon.simulated_azure import Azure


@pytest.mark.parametrize("restarts", [False, True])
def test_one_short_document_releases_no_vm(
    azure: Azure, make_daemon: Callable[..., DaemonProcess], restarts: bool
) -> None:
    vm = make_daemon(leader="self-only")
    vm.harness.configure(interval=1)  # the next document comes after the decision, as on a VM
    vm.harness.hook("prepare/10-a")
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.start()
    vm.wait(lambda: [each["prepared"] for each in vm.data("status")[1]["events"]] == ["ok"])
    assert azure.requests("POST") == []
    if restarts:
        vm.stop()
    short = json.dumps({"DocumentIncarnation": 9, "Events": [azure.entry(EventId=event, Resources=["vm1"])]})
    azure.fault("body", body=short, method="GET", route="scheduledevents", requests=1)
    if restarts:
        vm.start(until="")
    before = len(azure.requests("GET"))
    vm.wait(lambda: len(azure.requests("GET")) >= before + 3)
    assert azure.requests("POST") == [], "it released vm2, which has not prepared"
