# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.3: a failing IMDS never ends an event, and is logged once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hook_runner.reporting.status import to_text
from support.daemon.engine_harness import EngineHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]

SICK = (
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
    "server-error",
    "unavailable",
    "not-found",
    "gone",
    "too-many-requests",
    "bad-request",
    "forbidden-html",
    "redirect",
    "reset",
)


def warnings(harness: EngineHarness) -> int:
    return harness.times_logged("IMDS gives no good answer")


def alarms(harness: EngineHarness) -> int:
    return harness.times_logged("are stale since")


@pytest.mark.parametrize("started", [False, True])
def test_t47_t54_whatever_the_answer_is_the_event_is_not_over(azure: Azure, vm: EngineHarness, started: bool) -> None:
    event = azure.schedule("Reboot", hold=not started, started_for="5h")
    vm.poll()
    vm.poll(after=2)
    ran = vm.ran()
    for kind in SICK:
        azure.fault(kind)
        for _poll in range(2):
            vm.poll(after=1)
        azure.heal()
        assert vm.ran() == ran, kind
        # a byte order mark does not make it unreadable
        assert vm.health.error or kind == "bom", kind
        assert vm.record(event).gone_at is None
    vm.poll(after=1)
    assert vm.health.error == "" and vm.ran() == ran
    assert sum(vm.health.errors.values()) >= 2 * len(SICK) - 2
    azure.complete(event)
    vm.poll()
    assert vm.ran() == [*ran, "recover/10-a"]


def test_t49_ten_minutes_without_an_answer_are_an_alarm_and_not_an_end(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("refuse")
    gone, delays = 0.0, []
    while gone < 600:
        vm.poll(after=1)
        delays.append(vm.pacer.delay(bool(vm.engine.records)))
        # whole seconds, since the tests of this file share the simulator's clock
        vm.pass_time(round(delays[-1]) - 1)
        gone += round(delays[-1])
    # without the random part, which is up to as much again
    assert [round(delay, 2) for delay in delays[:5]] == [1, 1.25, 1.56, 1.95, 2.44] and len(set(delays[4:])) == 1
    assert (warnings(vm), alarms(vm)) == (1, 1)
    shown = vm.status()["imds"]
    assert shown["ok"] is False and shown["stale_since"] and shown["errors"] == {"unreachable": len(delays)}
    assert vm.ran() == ["prepare/10-a"]
    azure.heal()
    vm.poll(after=10)
    assert vm.times_logged("IMDS answers again") == 1 and vm.record(event).gone_at is None
    assert vm.status()["imds"]["stale_since"] is None


def test_t49_deadlines_are_kept_while_imds_is_silent(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", 'say hang; read status <> "$MARKS.gate.$EVENT_STAGE.$me"')
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    azure.fault("reset")
    vm.poll(after=54)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "timeout")]


def test_t52_an_update_of_imds_is_one_warning_and_no_alarm(azure: Azure, vm: EngineHarness) -> None:
    azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("gone", **{"for": 70})
    for _poll in range(6):
        vm.poll(after=10)
        assert vm.pacer.delay(True) <= 2.5
    vm.poll(after=9)
    vm.poll(after=10)
    assert (warnings(vm), alarms(vm)) == (1, 0)
    assert vm.health.error == "" and vm.ran() == ["prepare/10-a"]


@pytest.mark.parametrize(
    "how", [{}, {"retry_after": 4}, {"retry_after": 4, "retry_after_format": "date"}, {"retry_after": 3600}]
)
def test_t53_a_429_is_backed_off_from_as_it_asks(azure: Azure, vm: EngineHarness, how: dict[str, object]) -> None:
    azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("too-many-requests", **how)
    vm.poll(after=1)
    # an hour is not waited for: a Preempt would be slept through
    assert vm.pacer.delay(True) == {0: 1, 4: 4, 3600: 5}[how.get("retry_after", 0)]  # type: ignore[index]
    assert vm.status()["imds"]["errors"] == {"status-429": 1}


def test_t55_a_bad_request_of_ours_is_logged_once_and_not_hammered(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(api_version="2031-01-01")
    azure.schedule("Reboot")
    delays = []
    for _poll in range(6):
        vm.poll_once(after=30)
        delays.append(vm.pacer.delay(True))
    # the first ones may be a mistake of IMDS
    assert max(delays[:3]) < 2 and delays[3:] == [30, 30, 30]
    assert warnings(vm) == 1 and vm.times_logged("2031-01-01") >= 1
    assert vm.status()["imds"]["last_good_poll"] is None


def test_each_change_of_the_trouble_is_one_line(azure: Azure, vm: EngineHarness) -> None:
    azure.schedule("Reboot", hold=True)
    vm.poll()
    for kind in ("unavailable", "unavailable", "server-error", "server-error", "unavailable"):
        azure.heal()
        azure.fault(kind)
        vm.poll(after=1)
    assert warnings(vm) == 3


def test_status_of_a_proxy_names_the_remedy(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("forbidden-html")
    vm.poll()
    assert vm.status()["imds"]["error"].endswith("not from IMDS; exclude the address from the proxy or service mesh")


def test_status_without_a_good_answer_does_not_claim_no_events(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("refuse")
    vm.poll()
    assert to_text(vm.status()).endswith("events     none known; IMDS gives no good answer")


def test_t57_a_day_of_silence_ends_nothing_by_itself(azure: Azure, vm: EngineHarness) -> None:
    first = azure.schedule("Reboot", notice="5d", hold=True)
    second = azure.schedule("Freeze", notice="5d", hold=True)
    vm.poll()
    vm.restart("kill")
    vm.pass_time(90000)
    azure.complete(second)
    vm.settle()
    assert vm.ran("recover") == [], "no document has come yet"
    vm.poll()
    # the one is over; the hook waits for the other one
    assert vm.ran("recover") == [] and vm.record(first).gone_at is None and vm.record(second).gone_at is not None
    azure.complete(first)
    vm.poll()
    assert vm.ran("recover") == ["recover/10-a"] and vm.ran("prepare") == ["prepare/10-a"] * 2


def test_t57_a_reset_of_the_service_is_no_new_event(azure: Azure, vm: EngineHarness) -> None:
    azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.simulator.post("/disable", {"group": "web"})
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]


def test_t59_a_restart_of_imds_changes_nothing(azure: Azure, vm: EngineHarness) -> None:
    azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("refuse", **{"for": 5})
    azure.fault("gone", **{"from": 5, "for": 20})
    for _poll in range(5):
        vm.poll(after=1)
    for _poll in range(20):
        vm.poll(after=1)
    azure.simulator.post("/incarnation", {"group": "web", "to": 1})
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and vm.health.error == ""
    assert (warnings(vm), alarms(vm)) == (2, 0)


@pytest.mark.parametrize("kind", ["not-found", "empty", "reset"])
def test_the_own_name_may_come_later(azure: Azure, vm: EngineHarness, kind: str) -> None:
    event = azure.schedule("Reboot")
    azure.fault(kind, route="instance")
    vm.poll()
    vm.poll(after=5)
    assert vm.ran() == [] and azure.requests("POST") == [] and vm.status()["resource_name"] is None
    assert vm.times_logged("resource name is not known yet") == 1
    azure.heal()
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_configured_name_is_not_requested(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(resource_name="VM2")
    vm.hook("prepare/10-a")
    azure.schedule("Reboot", "vm2")
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.requests("GET", "instance") == []
