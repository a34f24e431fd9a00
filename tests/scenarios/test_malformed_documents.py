# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.2 and 8.3: odd documents and a sick service never look like the end of an event."""

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
def test_t26_t27_a_moved_time_is_a_change_of_the_same_event(simulate: Simulate, notice: str, left: float) -> None:
    azure = simulate(REBOOT)
    me = Observer(azure)
    me.look()
    azure.post("/events/one/change", {"notice": notice})
    assert me.look() == ["changed Reboot Scheduled mine"]
    assert me.seconds_left() == pytest.approx(left, abs=2)


def test_a_type_that_grew_worse_is_a_change_of_the_same_event(simulate: Simulate) -> None:
    azure = simulate({**REBOOT, "type": "Freeze"})
    me = Observer(azure)
    me.look()
    azure.post("/events/one/change", {"type": "Redeploy"})
    assert me.look() == ["changed Redeploy Scheduled mine"]


def test_resources_that_grow_and_shrink_change_whom_it_concerns(simulate: Simulate) -> None:
    azure = simulate({**REBOOT, "resources": ["vm2"]})
    me = Observer(azure)
    me.look()
    azure.post("/events/one/change", {"resources": ["vm2", "vm1"]})
    assert me.look() == ["changed Reboot Scheduled mine"]
    azure.post("/events/one/change", {"resources": ["vm2"]})
    assert me.look() == ["changed Reboot Scheduled of others"]


def test_t31_the_impossible_step_back_is_no_new_event(simulate: Simulate) -> None:
    azure = simulate(REBOOT)
    me = Observer(azure)
    me.look(after=901)
    azure.post("/events/one/change", {"status": "Scheduled", "notice": "10m"})
    me.look()
    assert [note.split()[0] for note in me.notes] == ["appeared", "changed"]


def test_t32_t34_the_incarnation_may_go_back_or_change_for_nothing(simulate: Simulate) -> None:
    azure = simulate(
        REBOOT, groups={"web": {"kind": "availability_set", "incarnation": 278, "vms": {"vm1": {}, "vm2": {}}}}
    )
    me = Observer(azure)
    me.look()
    azure.post("/incarnation", {"group": "web", "to": 1})
    assert me.look() == [] and me.known is not None and me.known.incarnation == 1
    azure.post("/events", {"type": "Freeze", "resources": ["vm1"]})
    assert me.look() == ["appeared Freeze Scheduled mine"]


def test_t42_the_preview_version_names_vms_with_an_underscore(simulate: Simulate) -> None:
    me = Observer(simulate(REBOOT), version="2017-03-01")
    assert me.look() == ["appeared Reboot Scheduled mine"]
    assert me.only().resources == ("_vm1",)


def test_t45_time_left_goes_by_the_clock_of_the_server(simulate: Simulate) -> None:
    azure = simulate(REBOOT)
    me = Observer(azure)
    # the simulated time is now twenty minutes ahead of this machine's
    azure.post("/events/one/cancel")
    azure.advance(1200)
    azure.post("/events", {"type": "Reboot", "resources": ["vm1"]})
    me.look()
    assert me.seconds_left() == pytest.approx(900, abs=2)


SICK = [
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
SICK += [
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


@pytest.mark.parametrize("kind", SICK)
def test_t47_t49_t54_whatever_is_wrong_the_event_is_not_over(pending: Simulator, kind: str) -> None:
    me = Observer(pending)
    me.look()
    pending.post("/faults", {"kind": kind})
    try:
        for _poll in range(3):
            assert me.look() == []
    finally:
        pending.delete("/faults")
    assert len(me.errors) == 3
    assert me.look() == [] and me.notes == ["appeared Reboot Scheduled mine"]
    assert me.pacer.error is None


def test_an_entry_that_cannot_be_read_does_not_end_the_others(pending: Simulator) -> None:
    me = Observer(pending)
    me.look()
    pending.post("/faults", {"kind": "body", "body": '{"DocumentIncarnation":9,"Events":[{"EventType":"Reboot"}]}'})
    try:
        assert me.look() == []
    finally:
        pending.delete("/faults")
    assert me.look() == [] and me.errors == []


def test_t52_t59_a_restart_of_imds_ends_nothing(simulate: Simulate) -> None:
    azure = simulate(REBOOT, faults=[{"kind": "gone", "from": 10, "to": 80}])
    me = Observer(azure)
    me.look()
    assert me.look(after=15) == [] and not me.pacer.is_outage() and me.pacer.delay(True) == 10
    me.slept.append(69)
    assert not me.pacer.is_outage()
    azure.post("/incarnation", {"group": "web", "to": 1})
    assert me.look(after=70) == []
    assert me.errors == ["ImdsRefused"] and me.notes == ["appeared Reboot Scheduled mine"]


def test_t53_the_limit_of_azure_is_kept(simulate: Simulate) -> None:
    azure = simulate(REBOOT, knobs={"rate_limit": 5})
    imds = Imds(azure.endpoints["vm1"])
    pacer = Pacer(imds)
    started = time.monotonic()
    for _question in range(3):
        pacer.call(imds.instance)
        pacer.call(imds.events)
        pacer.call(imds.approve, pacer.call(imds.events).events[0].event_id)
    assert time.monotonic() - started >= 2
    assert {request["status"] for request in azure.get("/requests")["requests"]} <= {200, 304}


def test_t53_a_burst_of_429_is_backed_off_from(simulate: Simulate) -> None:
    azure = simulate(REBOOT, faults=[{"kind": "too-many-requests", "retry_after": 4, "requests": "2-3"}])
    me = Observer(azure)
    for _poll in range(3):
        me.look()
    assert me.errors == ["ImdsRefused"] * 2
    assert me.pacer.errors_in_a_row == 2 and me.pacer.delay(True) == 4


def test_t55_an_error_of_ours_is_not_hammered(simulate: Simulate) -> None:
    me = Observer(simulate(REBOOT), version="2031-01-01")
    me.look()
    assert me.errors == ["ImdsRefused"] and me.pacer.delay(event_known=True) == 30


def test_t57_a_day_of_silence_resets_the_service_but_ends_nothing_by_itself(simulate: Simulate) -> None:
    azure = simulate({**REBOOT, "notice": "5d"})
    me = Observer(azure)
    me.look()
    azure.advance(90000)
    assert me.look() == []
    assert me.errors == [] and me.only().event_type == "Reboot"


def test_unknown_words_of_a_later_version_are_seen_and_not_approved(simulate: Simulate) -> None:
    body = (
        '{"DocumentIncarnation":2,"Events":[{"EventId":"0F6DB1C4-11C2-4B7A-9D9B-6A8E6D8E0001","EventStatus":"Scheduled",'
        '"EventType":"SpotRebalanceRecommendation","ResourceType":"VirtualMachine","Resources":["vm1"],'
        '"NotBefore":"Sat, 21 Nov 2026 12:00:00 GMT","Description":"","EventSource":"User","DurationInSeconds":-1,"Severity":2}]}'
    )
    me = Observer(simulate(faults=[{"kind": "body", "body": body}]))
    assert me.look() == ["appeared SpotRebalanceRecommendation Scheduled mine"]
    assert me.decide(Policy.preset("documented")) == ("never", False)
    assert me.decide(Policy.from_rules([{"when": {}, "do": "approve"}]), first_seen=None) == ("never", False)
    assert me.only().duration is None and me.only().not_before is not None
