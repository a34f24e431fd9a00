# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Types, statuses, sources and resource types that this version does not know: only a person approves the event."""

from __future__ import annotations

import time
from collections.abc import Callable

from hook_runner.service.control_socket import send_request
from support.daemon.daemon_process import DaemonProcess
from support.daemon.simulated_azure import Azure

MakeDaemon = Callable[..., DaemonProcess]

UNKNOWN = {
    "A-TYPE": {"EventType": "Hibernate"},
    "A-STATUS": {"EventStatus": "Paused"},
    "A-SOURCE": {"EventSource": "Robot"},
    "A-RESOURCE-TYPE": {"ResourceType": "Disk"},
}
KNOWN = "KNOWN"
APPROVE = {"rules": [{"when": {}, "approve": "now"}]}


def watching(azure: Azure, make_daemon: MakeDaemon, policy: object) -> DaemonProcess:
    """Return a daemon that has seen an event for each unknown value, and one without any."""
    vm = make_daemon(policy=policy)
    azure.show(
        *(azure.entry(EventId=event_id, **unknown) for event_id, unknown in UNKNOWN.items()),
        azure.entry(EventId=KNOWN),
    )
    vm.start()
    return vm


def requested(vm: DaemonProcess, event_id: str, *, force: bool) -> bool:
    """Request an approval, and return whether the daemon accepts it."""
    question = {"ask": "approve", "event_id": event_id, "force": force}
    answer = send_request(vm.harness.settings.run_directory, question)
    assert answer["found"]
    return bool(answer["accepted"])


def sent(vm: DaemonProcess) -> set[str]:
    """Return the events for which an approval was sent; the simulator refuses those that it does not have."""
    _code, data = vm.data("status")
    return {event["event_id"] for event in data["events"] if event["approval"]}


def test_no_rule_approves_an_unknown_value(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = watching(azure, make_daemon, APPROVE)
    vm.wait(lambda: azure.requests("POST"))
    until = time.monotonic() + 2
    vm.wait(lambda: time.monotonic() > until)
    assert sent(vm) == {KNOWN}


def test_approval_of_an_unknown_value_needs_force(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = watching(azure, make_daemon, "observe")
    assert requested(vm, KNOWN, force=False)
    accepted = [event_id for event_id in UNKNOWN if requested(vm, event_id, force=False)]
    assert accepted == []


def test_a_person_approves_an_unknown_value_with_force(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = watching(azure, make_daemon, "observe")
    refused = [event_id for event_id in UNKNOWN if not requested(vm, event_id, force=True)]
    assert refused == []
    vm.wait(lambda: sent(vm) == set(UNKNOWN))
