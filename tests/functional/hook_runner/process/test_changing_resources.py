# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Backends that give the VMs of an event differently, and VMs that leave it, at the daemon's interval."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from hook_runner.service.control_socket import send_request
from support.daemon.daemon_process import DaemonProcess
from support.daemon.simulated_azure import Azure

MakeDaemon = Callable[..., DaemonProcess]

# seconds after which the daemon has seen that an event, or a VM of it, is gone
SEEN_WITHIN = 3.0


def listed(azure: Azure) -> dict[str, Any]:
    """Return the only event, as IMDS lists it."""
    request = urllib.request.Request(
        azure.simulator.endpoints["vm1"] + "/metadata/scheduledevents?api-version=2020-07-01",
        headers={"Metadata": "true"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        (event,) = json.load(answer)["Events"]
    found: dict[str, Any] = event
    return found


def show(azure: Azure, event: dict[str, Any], **rest: Any) -> None:
    """Answer with a document that has this event alone."""
    body = json.dumps({"DocumentIncarnation": 9, "Events": [event]})
    azure.fault("body", body=body, method="GET", route="scheduledevents", **rest)


def polls(azure: Azure) -> int:
    return len(azure.requests("GET"))


def await_polls(vm: DaemonProcess, count: int) -> None:
    before = polls(vm.azure)
    vm.wait(lambda: polls(vm.azure) >= before + count)


def prepared(vm: DaemonProcess) -> str:
    events = send_request(vm.harness.settings.run_directory, {"ask": "status"})["events"]
    return str(events[0]["prepared"]) if events else ""


@pytest.mark.parametrize("restarts", [False, True])
def test_one_short_document_releases_no_vm(azure: Azure, make_daemon: MakeDaemon, restarts: bool) -> None:
    vm = make_daemon(leader="self-only")
    vm.harness.configure(interval=1)  # the next document comes after the decision, as on a VM
    vm.harness.hook("prepare/10-a")
    azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.start()
    vm.wait(lambda: prepared(vm) == "ok")
    assert azure.requests("POST") == []
    if restarts:
        vm.stop()
    show(azure, {**listed(azure), "Resources": ["vm1"]}, requests=1)
    if restarts:
        vm.start(until="")
    await_polls(vm, 3)
    assert azure.requests("POST") == [], "it released vm2, which has not prepared"


def test_vm_that_has_left_an_event_does_not_delay_its_approval(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(leader="self-only")
    vm.harness.hook("prepare/10-a")
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.start()
    vm.wait(lambda: prepared(vm) == "ok")
    azure.change(event, resources=["vm1"])
    began = time.monotonic()
    vm.wait(azure.approvals)
    assert time.monotonic() - began < SEEN_WITHIN and azure.approvals() == [("vm1", event)]


def left_event(azure: Azure, vm: DaemonProcess) -> str:
    """Start the daemon, let the VM prepare for an event, leave it and recover, and return the id of the event."""
    for stage in ("prepare", "recover"):
        vm.harness.hook(stage + "/10-a")
    # shortly before NotBefore the daemon does not wait for another document
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True, notice=50)
    vm.start()
    vm.wait(lambda: prepared(vm) == "ok")
    azure.change(event, resources=["vm2"])
    vm.wait(lambda: vm.times_logged("closed: recovered"))
    await_polls(vm, 2)
    return event


@pytest.mark.parametrize("disturbance", ["failed poll", "another event", "restart"])
def test_vm_that_has_left_an_event_is_not_prepared_again(
    azure: Azure, make_daemon: MakeDaemon, disturbance: str
) -> None:
    vm = make_daemon()
    left_event(azure, vm)
    if disturbance == "failed poll":
        azure.fault("unavailable", method="GET", requests=1)
    elif disturbance == "another event":
        azure.schedule("Freeze", "vm3", hold=True)
    else:
        vm.stop()
        vm.start()
    await_polls(vm, 5)
    assert vm.harness.ran() == ["prepare/10-a", "recover/10-a"]


def test_vm_that_comes_back_to_an_event_is_prepared_again(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    event = left_event(azure, vm)
    azure.change(event, resources=["vm1", "vm2"])
    vm.wait(lambda: vm.harness.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"])
