# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The control API (docs/simulator.md, "Control API")."""

from __future__ import annotations

import json
import re

import pytest

from imds_simulator.scenario.files import default_scenario
from imds_simulator.server.clock import ManualClock
from imds_simulator.server.engine import Engine
from support.simulator.raw_http import approve, send_request
from support.simulator_process import ControlError


def schedule(sim, **more):
    return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], **more})


def visible_events(sim, vm="vm1"):
    return send_request(sim.endpoints[vm]).json["Events"]


def expect_error(status, call, *arguments):
    with pytest.raises(ControlError) as caught:
        call(*arguments)
    assert caught.value.status == status and list(caught.value.body) == ["error"]
    return caught.value.body["error"]


def test_schedule_returns_the_event_with_hidden_state(frozen_simulator):
    made = schedule(frozen_simulator, name="mine", notice="5m", source="User", description="d", duration=3)
    assert (made["status"], made["name"], made["approved"], made["approved_by"]) == ("Scheduled", "mine", False, [])
    (event,) = visible_events(frozen_simulator)
    assert (event["EventId"], event["Description"], event["EventSource"], event["DurationInSeconds"]) == (
        made["id"],
        "d",
        "User",
        3,
    )
    assert (
        frozen_simulator.get("/events/mine")["id"]
        == frozen_simulator.get("/events/" + made["id"].lower())["id"]
        == made["id"]
    )
    assert "mine" in [each["name"] for each in frozen_simulator.get("/events")["events"]]


def test_schedule_with_at_and_after_appears_later(frozen_simulator):
    first = schedule(frozen_simulator, at=30, starts="automatic_approval", started_for=60)
    schedule(frozen_simulator, name="next", after=first["name"], at=5)
    assert visible_events(frozen_simulator) == []
    frozen_simulator.advance(30)
    assert [event["EventStatus"] for event in visible_events(frozen_simulator)] == ["Started"]
    frozen_simulator.advance(60)
    assert visible_events(frozen_simulator) == []
    frozen_simulator.advance(5)
    assert [event["EventStatus"] for event in visible_events(frozen_simulator)] == ["Scheduled"]


@pytest.mark.parametrize(
    "body, text",
    [
        ({"type": "Freeze"}, "the key resources is missing"),
        ({"type": "Freez", "resources": ["vm1"]}, "did you mean Freeze?"),
        ({"type": "Freeze", "resources": ["vm8"]}, "there is no VM vm8"),
        ({"resources": ["vm1"]}, "the key type is missing"),
        ({"type": "Freeze", "resources": ["vm1", "stranger"]}, "an event affects VMs of one group"),
        ({"type": "Freeze", "resources": ["vm1"], "after": "nothing"}, "there is no event nothing"),
        ({"type": "Freeze", "resources": ["vm1"], "notise": 1}, "notise: unknown key (did you mean notice?)"),
        ([], "not a JSON object"),
    ],
)
def test_schedule_of_invalid_event_is_400(frozen_simulator, body, text):
    assert text in expect_error(400, frozen_simulator.post, "/events", body)


def test_every_wrong_member_of_a_request_is_named(frozen_simulator):
    event = {"type": "F", "resources": ["vm8", 7], "notise": 1, "at": "soon", "after": "nothing", "not_before": "30s"}
    change = {"after": 5, "type": "F", "resources": ["vm8"], "notice": [], "stauts": "Started", "action": "go"}
    fault = {"kind": "gone", "route": 7, "vm": [], "requests": "0", "from": "soon", "retry_after": "x", "bdy": ""}
    bodies = {"/events": event, "/events/changing/change": change, "/faults": fault}
    bodies["/incarnation"] = {"group": "x", "to": -1, "add": "y", "by": 1}
    bodies["/notes"] = {"vm": "vm8", "what": "", "event": 7, "who": 1}
    schedule(frozen_simulator, name="changing")
    for path, body in bodies.items():
        named = [each.partition(":")[0].partition("[")[0] for each in problems_of(frozen_simulator, path, body)]
        assert {*named} == {*body} - {"kind"}, path


def problems_of(sim, path, body):
    return re.split(r"; (?=\w+(?:\[\d\])?: )", expect_error(400, sim.post, path, body))


def test_schedule_with_a_used_name_is_400(frozen_simulator):
    schedule(frozen_simulator, name="only-once")
    assert "only-once already" in expect_error(
        400, frozen_simulator.post, "/events", {"type": "Freeze", "resources": ["vm1"], "name": "only-once"}
    )


def test_approve_as_control_plane_other_tenants_or_vm(frozen_simulator):
    held = schedule(frozen_simulator, hold=True)["id"]
    assert frozen_simulator.post(f"/events/{held}/approve", {"as": "vm2"})["approved_by"] == ["vm2"]
    assert frozen_simulator.post(f"/events/{held}/approve")["approved_by"] == ["control-plane", "vm2"]
    frozen_simulator.advance(5)
    assert visible_events(frozen_simulator)[0]["EventStatus"] == "Scheduled"
    frozen_simulator.post(f"/events/{held}/approve", {"as": "other-tenants"})
    assert visible_events(frozen_simulator)[0]["EventStatus"] == "Scheduled"
    frozen_simulator.advance(1)
    assert visible_events(frozen_simulator)[0]["EventStatus"] == "Started"
    assert "not Scheduled" in expect_error(409, frozen_simulator.post, f"/events/{held}/approve")
    other = schedule(frozen_simulator)["id"]
    assert "there is no approver" in expect_error(400, frozen_simulator.post, f"/events/{other}/approve", {"as": "vm9"})
    assert "does not see" in expect_error(409, frozen_simulator.post, f"/events/{other}/approve", {"as": "stranger"})


def test_cancel_complete_and_change_act_on_events(frozen_simulator):
    event = schedule(frozen_simulator)["id"]
    assert (
        frozen_simulator.post(f"/events/{event}/change", {"type": "Reboot", "resources": ["vm1", "vm2"], "notice": 60})[
            "type"
        ]
        == "Reboot"
    )
    assert visible_events(frozen_simulator)[0]["Resources"] == ["vm1", "vm2"]
    assert frozen_simulator.post(f"/events/{event}/change", {"status": "Started"})["status"] == "Started"
    assert "cancelled" in expect_error(409, frozen_simulator.post, f"/events/{event}/cancel")
    assert (
        frozen_simulator.post(f"/events/{event}/change", {"status": "Scheduled", "notice": 60})["status"] == "Scheduled"
    )
    assert frozen_simulator.post(f"/events/{event}/cancel")["cancelled"]
    assert visible_events(frozen_simulator) == [] and "it has ended" in expect_error(
        409, frozen_simulator.post, f"/events/{event}/complete"
    )
    other = schedule(frozen_simulator)["id"]
    assert frozen_simulator.post(f"/events/{other}/complete")["status"] == "Gone"


@pytest.mark.parametrize(
    "body, text",
    [
        ({}, "the change is empty"),
        ({"after": 5, "notice": 1}, "applies a change immediately"),
        ({"resources": ["stranger"]}, "cannot move to another group"),
        ({"notise": 1}, "did you mean notice?"),
        ({"action": "impact"}, "impact_for is missing"),
    ],
)
def test_change_with_invalid_body_is_400(frozen_simulator, body, text):
    event = schedule(frozen_simulator)["id"]
    assert text in expect_error(400, frozen_simulator.post, f"/events/{event}/change", body)


def test_fail_adds_a_started_event(frozen_simulator):
    failed = frozen_simulator.post("/fail", {"vm": "vm2"})
    assert (failed["status"], failed["type"], failed["resources"]) == ("Started", "Reboot", ["vm2"])
    assert frozen_simulator.post("/fail", {"resources": ["vm1", "vm2"], "type": "Redeploy"})["type"] == "Redeploy"
    assert [event["EventStatus"] for event in visible_events(frozen_simulator)] == ["Started", "Started"]
    assert "resources" in expect_error(400, frozen_simulator.post, "/fail", {})


def test_unknown_events_and_paths_are_404_with_json(frozen_simulator):
    assert "nothing" in expect_error(404, frozen_simulator.post, "/events/nothing/cancel")
    expect_error(404, frozen_simulator.get, "/nowhere")
    expect_error(405, frozen_simulator.delete, "/events")


def test_advance_moves_the_clock_and_rejects_nonsense(frozen_simulator):
    before = frozen_simulator.get("/state")["unix"]
    assert frozen_simulator.post("/advance", {"seconds": "2m"})["unix"] == before + 120
    assert "missing" in expect_error(400, frozen_simulator.post, "/advance", {})
    assert "not a duration" in expect_error(400, frozen_simulator.post, "/advance", {"seconds": -1})


def test_knobs_can_be_read_and_set(frozen_simulator):
    assert frozen_simulator.get("/knobs")["etag"] is True
    assert (
        frozen_simulator.post("/knobs", {"etag": False, "notice_overrides": {"Freeze": 60}})["notice_overrides"][
            "Freeze"
        ]
        == 60
    )
    assert "unknown key" in expect_error(400, frozen_simulator.post, "/knobs", {"nope": 1})


def test_incarnation_and_disable_change_a_group(frozen_simulator):
    send_request(frozen_simulator.endpoints["vm1"])
    assert frozen_simulator.post("/incarnation", {"group": "web", "to": 500}) == {"incarnation": [500]}
    assert frozen_simulator.post("/incarnation", {"group": "web", "add": -3}) == {"incarnation": [497]}
    assert send_request(frozen_simulator.endpoints["vm2"]).json["DocumentIncarnation"] == 497
    assert frozen_simulator.post("/disable", {"group": "web"}) == {"scopes": ["web"]}
    assert not frozen_simulator.get("/state")["scopes"]["web"]["enabled"]
    assert send_request(frozen_simulator.endpoints["vm2"]).json["DocumentIncarnation"] == 1
    assert "there is no group" in expect_error(400, frozen_simulator.post, "/disable", {"group": "x"})
    assert "not a whole number" in expect_error(400, frozen_simulator.post, "/incarnation", {"group": "web", "to": "x"})


def test_state_has_all_sections(frozen_simulator):
    schedule(frozen_simulator)
    frozen_simulator.post("/faults", {"kind": "gone", "vm": "vm2", "for": "70s", "route": "instance"})
    state = frozen_simulator.get("/state")
    assert (
        state["vms"]["vm1"]["endpoint"] == frozen_simulator.endpoints["vm1"] and state["vms"]["vm1"]["scope"] == "web"
    )
    assert {"now", "unix", "speed", "epoch", "title", "scopes", "events", "faults"} <= set(state)
    assert (state["faults"][0]["kind"], state["faults"][0]["vms"], state["faults"][0]["active"]) == (
        "gone",
        ["vm2"],
        True,
    )


def test_health_index_and_fault_kinds_answer(frozen_simulator):
    assert frozen_simulator.get("/health") == {"ok": True, "title": "tests", "vms": 5}
    assert "POST /events/{event}/approve" in frozen_simulator.get("/")["endpoints"]
    assert "empty" in frozen_simulator.get("/fault-kinds")


def test_faults_can_be_listed_and_cleared_by_number(frozen_simulator):
    numbers = [frozen_simulator.post("/faults", {"kind": kind})["number"] for kind in ("empty", "gone")]
    assert [each["number"] for each in frozen_simulator.get("/faults")["faults"]] == numbers
    assert frozen_simulator.delete(f"/faults/{numbers[0]}") == {"cleared": 1}
    assert send_request(frozen_simulator.endpoints["vm1"]).status == 410
    expect_error(400, frozen_simulator.delete, f"/faults/{numbers[0]}")
    assert frozen_simulator.delete("/faults") == {"cleared": 1}
    assert "did you mean empty?" in expect_error(400, frozen_simulator.post, "/faults", {"kind": "emty"})


def test_log_has_requests_and_approvals_with_times(frozen_simulator):
    # the first request enables the service, which the log has, too
    send_request(frozen_simulator.endpoints["vm2"])
    last = frozen_simulator.get("/log")["lines"][-1]["number"]
    event = schedule(frozen_simulator, name="logged")["id"]
    approve(frozen_simulator.endpoints["vm2"], event)
    approve(frozen_simulator.endpoints["vm2"], "nonsense")
    frozen_simulator.advance(2)
    lines = frozen_simulator.get(f"/log?after={last}")["lines"]
    # the first request of all tests enables the service
    logged = [
        (line["what"], line.get("vm") or line.get("by"), line.get("status"))
        for line in lines
        if line["what"] != "enabled"
    ]
    assert logged[:5] == [
        ("scheduled", None, None),
        ("approval", "vm2", 200),
        ("approved", "vm2", None),
        ("approval", "vm2", 400),
        ("started", None, None),
    ]
    assert all(line["time"].endswith("Z") for line in lines)
    assert [line["ids"] for line in lines if line["what"] == "approval"] == [[event], ["nonsense"]]
    assert [line["what"] for line in frozen_simulator.get(f"/log?what=approval&after={last}")["lines"]] == [
        "approval",
        "approval",
    ]
    expect_error(400, frozen_simulator.get, "/log?after=x")


def test_requests_are_counted_and_recent_ones_listed(frozen_simulator):
    last = frozen_simulator.get("/requests")["requests"][-1]["number"]
    send_request(frozen_simulator.endpoints["vm2"])
    send_request(frozen_simulator.endpoints["vm1"], "/metadata/versions", headers={})
    got = frozen_simulator.get(f"/requests?after={last}")
    assert [(each["vm"], each["route"], each["method"], each["status"]) for each in got["requests"]] == [
        ("vm2", "scheduledevents", "GET", 200),
        ("vm1", "versions", "GET", 400),
    ]
    assert [each["vm"] for each in frozen_simulator.get(f"/requests?vm=vm1&after={last}")["requests"]] == ["vm1"]
    assert {"vm": "vm1", "method": "GET", "route": "versions", "status": 400} in [
        {key: each[key] for key in ("vm", "method", "route", "status")} for each in got["counts"]
    ]


def test_activity_log_is_bounded():
    from imds_simulator.server import activity_log

    kept = activity_log.ActivityLog()
    for number in range(activity_log.MAX_REQUESTS + 100):
        kept.add_request(0.0, f"vm{number % 7}", "GET", "scheduledevents", "2020-07-01", 200, "", "127.0.0.1")
    for number in range(activity_log.MAX_LINES + 50):
        kept.add_line(float(number), "x")
    assert (len(kept.requests), len(kept.lines), kept.dropped()) == (20000, 10000, {"lines": 50, "requests": 100})
    assert sum(each["count"] for each in kept.request_counts()) == 20100


def test_printed_log_has_control_characters_escaped():
    printed = []
    engine = Engine(default_scenario(), ManualClock(0), printed.append)
    engine.log("x", event="a\nb\x1b[31m", note="\u00e9")
    assert printed == ["1970-01-01T00:00:00.000Z x event=a\\nb\\x1b[31m note=\u00e9"]


def test_body_that_is_not_json_is_400(frozen_simulator):
    import urllib.error
    import urllib.request

    request = urllib.request.Request(frozen_simulator.control + "/advance", data=b"{", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
    assert caught.value.code == 400 and "not JSON" in json.loads(caught.value.read())["error"]


NINES = "9" * 5000


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("GET", "/log?after=%C2%B2", None),
        ("GET", "/log?after=" + NINES, None),
        ("GET", "/requests?after=-1", None),
        ("DELETE", "/faults/%C2%B2", None),
        ("DELETE", "/faults/" + NINES, None),
        ("POST", "/faults", {"kind": "gone", "requests": NINES}),
        ("POST", "/faults", {"kind": "gone", "from": float("nan")}),
        ("POST", "/faults", {"kind": "empty", "headers": {"X": "a\r\nb"}}),
        ("POST", "/faults", {"kind": "trickle", "bytes_per_second": float("inf")}),
        ("POST", "/faults", {"kind": []}),
        ("POST", "/disable", {"group": ["web"]}),
        ("POST", "/incarnation", {"group": {}, "to": 1}),
        ("POST", "/incarnation", {"group": "web", "to": -1}),
        ("POST", "/incarnation", {"group": "web", "to": 10**4299}),
        ("POST", "/incarnation", {"group": "web", "add": -(10**4299)}),
        ("POST", "/knobs", {"incarnation_step": 10**4299}),
        ("POST", "/knobs", {"xff_status": 200}),
        ("POST", "/knobs", {"incarnation_step": "\u00b2"}),
        ("POST", "/knobs", {"notice_overrides": {"Freeze": []}}),
        ("POST", "/advance", {"seconds": float("inf")}),
        ("POST", "/advance", {"seconds": None}),
        ("POST", "/advance", {"seconds": "9999999d"}),
        ("POST", "/events", {"type": "Freeze", "resources": ["vm1"], "at": "40000d"}),
        ("POST", "/events", {"type": "Freeze", "resources": [[]]}),
        ("POST", "/fail", {"resources": 5}),
        ("POST", "/fail", {"vm": ["vm1"]}),
    ],
)
def test_odd_input_is_400(frozen_simulator, method, path, body):
    expect_error(400, frozen_simulator.call, method, path, body)
    assert frozen_simulator.get("/health")["ok"]


@pytest.mark.parametrize(
    "body, kind",
    [
        (b"[" * 100000, "application/json"),
        (b"{}", "application/json; charset=nonsense"),
        (b"\xff\xfe", "application/json"),
        (b'{"seconds": %s}' % NINES.encode(), "application/json"),
    ],
)
def test_body_that_cannot_be_decoded_is_400(frozen_simulator, body, kind):
    assert send_request(frozen_simulator.control, "/advance", "POST", {"Content-Type": kind}, body).status == 400


def test_change_before_appearance_is_409(frozen_simulator):
    schedule(frozen_simulator, name="not-yet", at=60)
    for body in ({"notice": 60}, {"status": "Started"}, {"action": "impact", "impact_for": 5}):
        assert "has not appeared yet" in expect_error(409, frozen_simulator.post, "/events/not-yet/change", body)
    assert frozen_simulator.post("/events/not-yet/change", {"description": "new"})["description"] == "new"


def test_log_has_not_before_as_a_date(frozen_simulator):
    made = schedule(frozen_simulator, name="dated", notice="5m")
    (line,) = [line for line in frozen_simulator.get("/log?what=scheduled")["lines"] if line["id"] == made["id"]]
    assert line["not_before"] == made["not_before"]
