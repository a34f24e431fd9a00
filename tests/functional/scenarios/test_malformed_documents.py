# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.2, 8.3: malformed documents and faults do not end an event."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from azure_scheduled_events import Imds, Policy
from azure_scheduled_events.pacing import Pacer
from support import simulator_process
from support.observer import Observer
from support.simulator_process import Simulator

Simulate = Callable[..., Simulator]

REBOOT: dict[str, Any] = {"name": "one", "type": "Reboot", "resources": ["vm1"]}


@pytest.mark.parametrize("notice, left", [("20m", 1200), ("5m", 300)])
def test_moved_not_before_is_a_change_of_the_same_event(simulate: Simulate, notice: str, left: float) -> None:
    """T26, T27."""
    azure = simulate(REBOOT)
    vm = Observer(azure)
    vm.poll()
    azure.post("/events/one/change", {"notice": notice})
    assert vm.poll() == ["changed Reboot Scheduled mine"]
    assert vm.seconds_left() == pytest.approx(left, abs=2)


def test_worse_type_is_a_change_of_the_same_event(simulate: Simulate) -> None:
    azure = simulate({**REBOOT, "type": "Freeze"})
    vm = Observer(azure)
    vm.poll()
    azure.post("/events/one/change", {"type": "Redeploy"})
    assert vm.poll() == ["changed Redeploy Scheduled mine"]


def test_changed_resources_change_the_affected_vms(simulate: Simulate) -> None:
    azure = simulate({**REBOOT, "resources": ["vm2"]})
    vm = Observer(azure)
    vm.poll()
    azure.post("/events/one/change", {"resources": ["vm2", "vm1"]})
    assert vm.poll() == ["changed Reboot Scheduled mine"]
    azure.post("/events/one/change", {"resources": ["vm2"]})
    assert vm.poll() == ["changed Reboot Scheduled of others"]


def test_started_event_that_is_scheduled_again_is_the_same_event(simulate: Simulate) -> None:
    """T31."""
    azure = simulate(REBOOT)
    vm = Observer(azure)
    vm.poll(after=901)
    azure.post("/events/one/change", {"status": "Scheduled", "notice": "10m"})
    vm.poll()
    assert [note.split()[0] for note in vm.notes] == ["appeared", "changed"]


def test_incarnation_that_changes_alone_causes_no_change(simulate: Simulate) -> None:
    """T32, T34."""
    azure = simulate(
        REBOOT, groups={"web": {"kind": "availability_set", "incarnation": 278, "vms": {"vm1": {}, "vm2": {}}}}
    )
    vm = Observer(azure)
    vm.poll()
    azure.post("/incarnation", {"group": "web", "to": 1})
    assert vm.poll() == [] and vm.known is not None and vm.known.incarnation == 1
    azure.post("/events", {"type": "Freeze", "resources": ["vm1"]})
    assert vm.poll() == ["appeared Freeze Scheduled mine"]


def test_preview_version_names_vms_with_an_underscore(simulate: Simulate) -> None:
    """T42."""
    vm = Observer(simulate(REBOOT), version="2017-03-01")
    assert vm.poll() == ["appeared Reboot Scheduled mine"]
    assert vm.single_event().resources == ("_vm1",)


def test_time_left_follows_the_clock_of_the_server(simulate: Simulate) -> None:
    """T45."""
    azure = simulate(REBOOT)
    vm = Observer(azure)
    # the simulated time is now twenty minutes ahead of the clock of this machine
    azure.post("/events/one/cancel")
    azure.advance(1200)
    azure.post("/events", {"type": "Reboot", "resources": ["vm1"]})
    vm.poll()
    assert vm.seconds_left() == pytest.approx(900, abs=2)


FAULT_KINDS = [
    "empty",
    "html",
    "not-json",
    "null",
    "list",
    "object",
    "events-null",
    "bom",
    "invalid-utf8",
    "cut-json",
    "truncated",
    "truncated-chunked",
]
FAULT_KINDS += [
    "server-error",
    "unavailable",
    "not-found",
    "gone",
    "too-many-requests",
    "bad-request",
    "forbidden-html",
    "redirect",
    "reset",
    "refuse",
]


@pytest.fixture(scope="module")
def pending() -> Iterator[Simulator]:
    scenario = {
        "groups": {"one": {"kind": "standalone", "vms": {"vm1": {}}}},
        "events": [REBOOT],
        "knobs": {"rate_limit": 0},
    }
    with simulator_process.start(scenario, args=["--clock", "manual"]) as azure:
        yield azure


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_faulty_answer_does_not_end_the_event(pending: Simulator, kind: str) -> None:
    """T47, T49, T54."""
    vm = Observer(pending)
    vm.poll()
    pending.post("/faults", {"kind": kind})
    try:
        for _poll in range(3):
            assert vm.poll() == []
    finally:
        pending.delete("/faults")
    assert len(vm.errors) == 3
    assert vm.poll() == [] and vm.notes == ["appeared Reboot Scheduled mine"]
    assert vm.pacer.error is None


def test_unreadable_entry_does_not_end_other_events(pending: Simulator) -> None:
    vm = Observer(pending)
    vm.poll()
    pending.post("/faults", {"kind": "body", "body": '{"DocumentIncarnation":9,"Events":[{"EventType":"Reboot"}]}'})
    try:
        assert vm.poll() == []
    finally:
        pending.delete("/faults")
    assert vm.poll() == [] and vm.errors == []


def test_restart_of_imds_ends_no_event(simulate: Simulate) -> None:
    """T52, T59."""
    azure = simulate(REBOOT, faults=[{"kind": "gone", "from": 10, "to": 80}])
    vm = Observer(azure)
    vm.poll()
    assert vm.poll(after=15) == [] and not vm.pacer.is_outage() and vm.pacer.delay(True) == 10
    vm.slept.append(69)
    assert not vm.pacer.is_outage()
    azure.post("/incarnation", {"group": "web", "to": 1})
    assert vm.poll(after=70) == []
    assert vm.errors == ["ImdsRefused"] and vm.notes == ["appeared Reboot Scheduled mine"]


def test_pacer_stays_below_the_rate_limit(simulate: Simulate) -> None:
    """T53."""
    azure = simulate(REBOOT, knobs={"rate_limit": 5})
    imds = Imds(azure.endpoints["vm1"])
    pacer = Pacer(imds)
    started = time.monotonic()
    for _round in range(3):
        pacer.call(imds.instance)
        pacer.call(imds.events)
        pacer.call(imds.approve, pacer.call(imds.events).events[0].event_id)
    assert time.monotonic() - started >= 2
    assert {request["status"] for request in azure.get("/requests")["requests"]} <= {200, 304}


def test_pacer_honours_retry_after_of_429(simulate: Simulate) -> None:
    """T53."""
    azure = simulate(REBOOT, faults=[{"kind": "too-many-requests", "retry_after": 4, "requests": "2-3"}])
    vm = Observer(azure)
    for _poll in range(3):
        vm.poll()
    assert vm.errors == ["ImdsRefused"] * 2
    assert vm.pacer.errors_in_a_row == 2 and vm.pacer.delay(True) == 4


def test_invalid_request_is_repeated_slowly(simulate: Simulate) -> None:
    """T55."""
    vm = Observer(simulate(REBOOT), version="2031-01-01")
    vm.poll()
    assert vm.errors == ["ImdsRefused"] and vm.pacer.delay(event_known=True) == 30


def test_day_without_requests_ends_no_event(simulate: Simulate) -> None:
    """T57."""
    azure = simulate({**REBOOT, "notice": "5d"})
    vm = Observer(azure)
    vm.poll()
    azure.advance(90000)
    assert vm.poll() == []
    assert vm.errors == [] and vm.single_event().event_type == "Reboot"


def test_unknown_type_of_a_later_version_is_reported_and_not_approved(simulate: Simulate) -> None:
    body = (
        '{"DocumentIncarnation":2,"Events":[{"EventId":"0F6DB1C4-11C2-4B7A-9D9B-6A8E6D8E0001","EventStatus":"Scheduled",'
        '"EventType":"SpotRebalanceRecommendation","ResourceType":"VirtualMachine","Resources":["vm1"],'
        '"NotBefore":"Sat, 21 Nov 2026 12:00:00 GMT","Description":"","EventSource":"User","DurationInSeconds":-1,'
        '"Severity":2}]}'
    )
    vm = Observer(simulate(faults=[{"kind": "body", "body": body}]))
    assert vm.poll() == ["appeared SpotRebalanceRecommendation Scheduled mine"]
    assert vm.decide(Policy.preset("documented")) == ("never", False)
    assert vm.decide(Policy.from_rules([{"when": {}, "do": "approve"}]), first_seen=None) == ("never", False)
    assert vm.single_event().duration is None and vm.single_event().not_before is not None
