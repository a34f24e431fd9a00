# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.3: a sick service never looks like the end of an event, and is told of once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]

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


def warnings(rig: Rig) -> int:
    return rig.said("IMDS gives no good answer")


def alarms(rig: Rig) -> int:
    return rig.said("is stale since")


@pytest.mark.parametrize("started", [False, True])
def test_t47_t54_whatever_the_answer_is_the_event_is_not_over(azure: Azure, me: Rig, started: bool) -> None:
    event = azure.schedule("Reboot", hold=not started, started_for="5h")
    me.look()
    me.look(after=2)
    ran = me.ran()
    for kind in SICK:
        azure.fault(kind)
        for _poll in range(2):
            me.look(after=1)
        azure.heal()
        assert me.ran() == ran, kind
        # a byte order mark does not make it unreadable
        assert me.health.error or kind == "bom", kind
        assert me.record(event).gone_at is None
    me.look(after=1)
    assert me.health.error == "" and me.ran() == ran
    assert sum(me.health.errors.values()) >= 2 * len(SICK) - 2
    azure.complete(event)
    me.look()
    assert me.ran() == [*ran, "recover/10-a"]


def test_t49_ten_minutes_without_an_answer_are_an_alarm_and_not_an_end(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot", hold=True)
    me.look()
    azure.fault("refuse")
    gone, delays = 0.0, []
    while gone < 600:
        me.look(after=1)
        delays.append(me.pacer.delay(bool(me.engine.records)))
        # whole seconds, since the tests of this file share the simulator's clock
        me.pass_time(round(delays[-1]) - 1)
        gone += round(delays[-1])
    # without the random part, which is up to as much again
    assert [round(delay, 2) for delay in delays[:5]] == [1, 1.25, 1.56, 1.95, 2.44] and len(set(delays[4:])) == 1
    assert (warnings(me), alarms(me)) == (1, 1)
    told = me.status()["imds"]
    assert told["ok"] is False and told["stale_since"] and told["errors"] == {"unreachable": len(delays)}
    assert me.ran() == ["prepare/10-a"]
    azure.heal()
    me.look(after=10)
    assert me.said("IMDS answers again") == 1 and me.record(event).gone_at is None
    assert me.status()["imds"]["stale_since"] is None


def test_t49_deadlines_are_kept_while_imds_is_silent(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig()
    me.hook("prepare/10-a", 'say hang; read status <> "$MARKS.gate.$EVENT_STAGE.$me"')
    event = azure.schedule("Reboot", notice=60)
    me.look()
    azure.fault("reset")
    me.look(after=54)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


def test_t52_an_update_of_imds_is_one_warning_and_no_alarm(azure: Azure, me: Rig) -> None:
    azure.schedule("Reboot", hold=True)
    me.look()
    azure.fault("gone", **{"for": 70})
    for _poll in range(6):
        me.look(after=10)
        assert me.pacer.delay(True) <= 2.5
    me.look(after=9)
    me.look(after=10)
    assert (warnings(me), alarms(me)) == (1, 0)
    assert me.health.error == "" and me.ran() == ["prepare/10-a"]


@pytest.mark.parametrize(
    "how", [{}, {"retry_after": 4}, {"retry_after": 4, "retry_after_format": "date"}, {"retry_after": 3600}]
)
def test_t53_a_429_is_backed_off_from_as_it_asks(azure: Azure, me: Rig, how: dict[str, object]) -> None:
    azure.schedule("Reboot", hold=True)
    me.look()
    azure.fault("too-many-requests", **how)
    me.look(after=1)
    # an hour is not waited for: a Preempt would be slept through
    assert me.pacer.delay(True) == {0: 1, 4: 4, 3600: 5}[how.get("retry_after", 0)]  # type: ignore[index]
    assert me.status()["imds"]["errors"] == {"status-429": 1}


def test_t55_a_bad_request_of_ours_is_logged_once_and_not_hammered(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(api_version="2031-01-01")
    azure.schedule("Reboot")
    delays = []
    for _poll in range(6):
        me.look(after=30)
        delays.append(me.pacer.delay(True))
    # the first ones may be a mistake of IMDS
    assert max(delays[:3]) < 2 and delays[3:] == [30, 30, 30]
    assert warnings(me) == 1 and me.said("2031-01-01") >= 1
    assert me.status()["imds"]["last_good_poll"] is None


def test_each_change_of_the_trouble_is_one_line(azure: Azure, me: Rig) -> None:
    azure.schedule("Reboot", hold=True)
    me.look()
    for kind in ("unavailable", "unavailable", "server-error", "server-error", "unavailable"):
        azure.heal()
        azure.fault(kind)
        me.look(after=1)
    assert warnings(me) == 3


def test_t57_a_day_of_silence_ends_nothing_by_itself(azure: Azure, me: Rig) -> None:
    first = azure.schedule("Reboot", notice="5d", hold=True)
    second = azure.schedule("Freeze", notice="5d", hold=True)
    me.look()
    me.restart("kill")
    me.pass_time(90000)
    azure.complete(second)
    me.settle()
    assert me.ran("recover") == [], "no document has told anything yet"
    me.look()
    # the one is over; the hook waits for the other one
    assert me.ran("recover") == [] and me.record(first).gone_at is None and me.record(second).gone_at is not None
    azure.complete(first)
    me.look()
    assert me.ran("recover") == ["recover/10-a"] and me.ran("prepare") == ["prepare/10-a"] * 2


def test_t57_a_reset_of_the_service_is_no_new_event(azure: Azure, me: Rig) -> None:
    azure.schedule("Reboot", hold=True)
    me.look()
    azure.simulator.post("/disable", {"group": "web"})
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"]


def test_t59_a_restart_of_imds_changes_nothing(azure: Azure, me: Rig) -> None:
    azure.schedule("Reboot", hold=True)
    me.look()
    azure.fault("refuse", **{"for": 5})
    azure.fault("gone", **{"from": 5, "for": 20})
    for _poll in range(5):
        me.look(after=1)
    for _poll in range(20):
        me.look(after=1)
    azure.simulator.post("/incarnation", {"group": "web", "to": 1})
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"] and me.health.error == ""
    assert (warnings(me), alarms(me)) == (2, 0)


@pytest.mark.parametrize("kind", ["not-found", "empty", "reset"])
def test_the_own_name_may_come_later(azure: Azure, me: Rig, kind: str) -> None:
    event = azure.schedule("Reboot")
    azure.fault(kind, route="instance")
    me.look()
    me.look(after=5)
    assert me.ran() == [] and azure.requests("POST") == [] and me.status()["resource_name"] is None
    assert me.said("resource name is not known yet") == 1
    azure.heal()
    me.look(after=5)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_a_configured_name_is_not_asked_for(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(resource_name="VM2")
    me.hook("prepare/10-a")
    azure.schedule("Reboot", "vm2")
    me.look()
    assert me.ran() == ["prepare/10-a"] and azure.requests("GET", "instance") == []
