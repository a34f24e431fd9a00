# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The control API (docs/simulator.md, "Control API")."""

from __future__ import annotations

import re

import pytest

from imds_simulator.scenario.files import default_scenario
from imds_simulator.server import activity_log
from imds_simulator.server.clock import ManualClock
from imds_simulator.server.engine import Engine
from imds_simulator.testing import ControlError
from support.simulator.raw_http import send_request

FREEZE = {"type": "Freeze", "resources": ["vm1"]}


def schedule(sim, **more):
    return sim.post("/events", {**FREEZE, **more})


def visible_events(sim):
    return send_request(sim.endpoint).json["Events"]


def visible_statuses(sim):
    return [event["EventStatus"] for event in visible_events(sim)]


def expect_error(status, call, *arguments):
    with pytest.raises(ControlError) as caught:
        call(*arguments)
    assert caught.value.status == status and not caught.value.error.startswith("{")
    return caught.value.error


def test_schedule_returns_the_event_with_hidden_state(sim):
    made = schedule(sim, name="mine", notice="5m", source="User", description="d", duration=3)
    assert (made["status"], made["name"], made["approved"], made["approved_by"]) == ("Scheduled", "mine", False, [])
    (event,) = visible_events(sim)
    assert (event["EventId"], event["Description"], event["EventSource"]) == (made["id"], "d", "User")
    assert event["DurationInSeconds"] == 3
    assert sim.get("/events/mine")["id"] == sim.get("/events/" + made["id"].lower())["id"] == made["id"]
    assert "mine" in [each["name"] for each in sim.get("/events")["events"]]


def test_event_without_a_name_gets_one_that_no_event_has(sim):
    number = int(schedule(sim)["name"].removeprefix("control"))
    schedule(sim, name=f"control{number + 1}")
    assert [schedule(sim)["name"], schedule(sim)["name"]] == [f"control{number + 2}", f"control{number + 3}"]


def test_name_is_used_once_also_when_its_event_has_ended(sim):
    schedule(sim, name="once")
    again = {"type": "Freeze", "resources": ["vm1"], "name": "once"}
    problem = "name: there is an event once already"
    assert expect_error(400, sim.post, "/events", again) == f"{problem}; choose another name"
    sim.post("/events/once/complete")
    assert expect_error(400, sim.post, "/events", again) == f"{problem}, which has ended; choose another name"


def test_schedule_with_at_and_after_appears_later(sim):
    first = schedule(sim, at=30, starts="automatic_approval", started_for=60)
    schedule(sim, name="next", after=first["name"], at=5)
    found = [visible_statuses(sim)]
    for seconds in (30, 60, 5):
        sim.advance(seconds)
        found.append(visible_statuses(sim))
    assert found == [[], ["Started"], [], ["Scheduled"]]
    # five seconds after the end of the first one
    assert schedule(sim, after=first["name"], at=7)["status"] == "Planned"
    sim.advance(2)
    assert visible_statuses(sim) == ["Scheduled"] * 2


def test_every_wrong_member_of_a_request_is_named(sim):
    event = {"type": "F", "resources": ["vm8", 7], "notise": 1, "at": "soon", "after": "nothing", "not_before": "30s"}
    event["name"] = "changing"
    change = {"after": 5, "type": "F", "resources": ["vm8"], "notice": [], "stauts": "Started", "action": "go"}
    fault = {"kind": "gone", "route": 7, "vm": [], "requests": "0", "from": "soon", "retry_after": "x", "bdy": ""}
    bodies = {"/events": event, "/events/changing/change": change, "/faults": fault}
    bodies["/incarnation"] = {"group": "x", "to": -1, "add": "y", "by": 1}
    bodies["/notes"] = {"vm": "vm8", "what": "", "event": 7, "who": 1}
    schedule(sim, name="changing")
    for path, body in bodies.items():
        problems = re.split(r"; (?=\w+(?:\[\d\])?: )", expect_error(400, sim.post, path, body))
        named = [each.partition(":")[0].partition("[")[0] for each in problems]
        assert {*named} == {*body} - {"kind"}, path
    body = {"kind": "gonne", "status": 99, "body_base64": "?", "delay": "soon"}
    found = re.findall(r"(?:^|; )(\w+): ", expect_error(400, sim.post, "/faults", body))
    assert found == ["kind", "status", "body_base64", "delay"]


def test_approve_as_control_plane_other_tenants_or_vm(sim):
    held, other = schedule(sim, hold=True)["id"], schedule(sim, hold=True)["id"]
    assert sim.post(f"/events/{held}/approve", {"as": "vm2"})["approved_by"] == ["vm2"]
    assert sim.post(f"/events/{held}/approve")["approved_by"] == ["control-plane", "vm2"]
    lines = [(line["by"], line.get("resources")) for line in sim.log(what="approved")[-2:]]
    assert lines == [("vm2", None), ("control-plane", ["vm1"])], "a VM approves for itself"
    sim.advance(5)
    assert visible_statuses(sim) == ["Scheduled", "Scheduled"]
    sim.post(f"/events/{held}/approve", {"as": "other-tenants"})
    assert visible_statuses(sim) == ["Scheduled", "Scheduled"]
    sim.advance(1)
    assert visible_statuses(sim) == ["Started", "Scheduled"]
    assert "not Scheduled" in expect_error(409, sim.post, f"/events/{held}/approve")
    assert "there is no approver" in expect_error(400, sim.post, f"/events/{other}/approve", {"as": "vm9"})
    assert "does not see" in expect_error(409, sim.post, f"/events/{other}/approve", {"as": "stranger"})


def test_each_approver_approves_scheduled_events_only(sim):
    ended, started = (schedule(sim, resources=["vm1", "vm2"])["id"] for _each in range(2))
    for event in (ended, started):
        assert sim.post(f"/events/{event}/approve", {"as": "arm"})["approved_by"] == ["arm"]
    sim.advance(1)
    sim.post(f"/events/{ended}/complete")
    planned = schedule(sim, at=60)["id"]
    for each, state in (
        (started, "it is Started, not Scheduled"),
        (ended, "it has ended"),
        (planned, "it has not appeared yet"),
    ):
        for approver in ("control-plane", "other-tenants", "arm", "vm1"):
            assert state in expect_error(409, sim.post, f"/events/{each}/approve", {"as": approver})


@pytest.mark.parametrize("vm", ["vm1", "pool_3"])
def test_acknowledge_path_acknowledges_a_visible_event(sim, vm):
    made = schedule(sim, resources=[vm])
    (shown,) = [each for each in sim.get("/state")["events"] if each["id"] == made["id"]]
    assert shown["acknowledge_path"] == made["acknowledge_path"]
    answer = send_request(sim.control, made["acknowledge_path"], "POST", {"Authorization": "Bearer any"})
    assert answer.status == 200 and sim.get(f"/events/{made['id']}")["approved_by"] == ["arm"]
    assert sim.post(f"/events/{made['id']}/complete")["acknowledge_path"] is None


def test_cancel_complete_and_change_act_on_events(sim):
    event = "/events/" + schedule(sim)["id"]
    assert sim.post(event + "/change", {"type": "Reboot", "resources": ["vm1", "vm2"]})["type"] == "Reboot"
    assert visible_events(sim)[0]["Resources"] == ["vm1", "vm2"]
    assert sim.post(event + "/change", {"status": "Started"})["status"] == "Started"
    assert "cancelled" in expect_error(409, sim.post, event + "/cancel")
    assert sim.post(event + "/change", {"status": "Scheduled", "notice": 60})["status"] == "Scheduled"
    assert sim.post(event + "/cancel")["cancelled"] and visible_events(sim) == []
    assert "it has ended" in expect_error(409, sim.post, event + "/complete")
    assert sim.post(f"/events/{schedule(sim)['id']}/complete")["status"] == "Gone"


def test_change_before_appearance_is_409(sim):
    event = f"/events/{schedule(sim, at=60)['id']}/change"
    for body in ({"notice": 60}, {"status": "Started"}, {"action": "impact", "impact_for": 5}):
        assert "has not appeared yet" in expect_error(409, sim.post, event, body)
    assert sim.post(event, {"description": "new"})["description"] == "new"
    sim.advance(60)
    assert visible_events(sim)[0]["Description"] == "new"


def test_fail_adds_a_started_event(sim):
    failed = sim.post("/fail", {"vm": "vm2"})
    assert (failed["status"], failed["type"], failed["resources"]) == ("Started", "Reboot", ["vm2"])
    assert sim.post("/fail", {"resources": ["vm1", "vm2"], "type": "Redeploy"})["type"] == "Redeploy"
    assert visible_statuses(sim) == ["Started", "Started"]
    assert "resources" in expect_error(400, sim.post, "/fail", {})
    assert "either vm or resources" in expect_error(400, sim.post, "/fail", {"vm": "vm2", "resources": ["vm1"]})
    assert "starts: is hardware_failure here" in expect_error(400, sim.post, "/fail", {"vm": "vm2", "starts": "notice"})


def test_unknown_events_and_paths_are_404_with_json(sim):
    assert "nothing" in expect_error(404, sim.post, "/events/nothing/cancel")
    expect_error(404, sim.post, "/notes", {"vm": "vm1", "what": "prepared", "event": "nothing"})
    expect_error(404, sim.get, "/nowhere")
    expect_error(405, sim.delete, "/events")
    refused = send_request(sim.control, "/events", "DELETE", {})
    assert {*refused.headers["Allow"].split(",")} == {"GET", "HEAD", "POST"}


def test_advance_moves_the_clock_and_rejects_nonsense(sim):
    before = sim.get("/state")["unix"]
    assert sim.post("/advance", {"seconds": "2m"})["unix"] == before + 120
    assert "missing" in expect_error(400, sim.post, "/advance", {})
    assert "not a duration" in expect_error(400, sim.post, "/advance", {"seconds": -1})


def test_incarnation_and_disable_change_a_group(sim):
    send_request(sim.endpoints["vm1"])
    assert sim.post("/incarnation", {"group": "web", "to": 500}) == {"incarnation": [500]}
    assert sim.post("/incarnation", {"group": "web", "add": -3}) == {"incarnation": [497]}
    assert send_request(sim.endpoints["vm2"]).json["DocumentIncarnation"] == 497
    assert sim.post("/disable", {"group": "web"}) == {"scopes": ["web"]}
    assert not sim.get("/state")["scopes"]["web"]["enabled"]
    assert send_request(sim.endpoints["vm2"]).json["DocumentIncarnation"] == 1
    assert "there is no group" in expect_error(400, sim.post, "/disable", {"group": "x"})


def test_state_has_all_sections(sim):
    schedule(sim)
    sim.post("/faults", {"kind": "gone", "vm": "vm2", "for": "70s", "route": "instance"})
    state = sim.get("/state")
    vm1, (fault,) = state["vms"]["vm1"], state["faults"]
    assert (vm1["endpoint"], vm1["scope"]) == (sim.endpoints["vm1"], "web")
    assert {"now", "unix", "speed", "epoch", "title", "scopes", "events", "faults"} <= set(state)
    assert (fault["kind"], fault["vms"], fault["active"]) == ("gone", ["vm2"], True)


def test_health_index_and_schema_answer(sim):
    assert sim.get("/health") == {"ok": True, "title": "tests", "vms": 5}
    assert "POST /events/{event}/approve" in sim.get("/")["endpoints"]
    keys = sim.get("/schema")["properties"]
    assert keys["events"]["items"]["properties"]["type"]["enum"][0] == "Freeze"
    assert "hang" in keys["faults"]["items"]["properties"]["kind"]["enum"]


def test_log_does_not_have_the_token_of_resource_manager(sim):
    sim.post("/knobs", {"arm_token": "of-resource-manager", "rate_limit": 4})
    line = sim.log(what="knobs")[-1]
    assert "of-resource-manager" not in str(line) and '"rate_limit": 4' in line["set"]


def test_log_has_a_changed_not_before_as_a_date_once_the_event_appeared(sim):
    planned, dated = schedule(sim, at=60), schedule(sim)
    changed = [sim.post(f"/events/{each['id']}/change", {"description": "x"}) for each in (planned, dated)]
    lines = {line["id"]: line["not_before"] for line in sim.log(what="changed")}
    assert [lines[each["id"]] for each in changed] == [None, dated["not_before"]]


def test_requests_are_counted_and_recent_ones_listed(sim):
    send_request(sim.endpoints["vm2"])
    last = sim.get("/requests")["requests"][-1]["number"]
    send_request(sim.endpoints["vm2"])
    send_request(sim.endpoints["vm1"], "/metadata/versions", headers={})
    got = sim.get(f"/requests?after={last}")
    names = ("vm", "method", "route", "status")
    vm1, vm2 = ("vm1", "GET", "versions", 400), ("vm2", "GET", "scheduledevents", 200)
    assert [tuple(each[name] for name in names) for each in got["requests"]] == [vm2, vm1]
    assert [each["vm"] for each in sim.get(f"/requests?vm=vm1&after={last}")["requests"]] == ["vm1"]
    assert vm1 in [tuple(each[name] for name in names) for each in got["counts"]]


def test_activity_log_is_bounded_and_first_views_displace_no_other_line():
    kept = activity_log.ActivityLog()
    for number in range(activity_log.MAX_REQUESTS + 100):
        kept.add_request(0.0, f"vm{number % 7}", "GET", "scheduledevents", "2020-07-01", 200, "", "127.0.0.1")
    for number in range(activity_log.MAX_LINES + 50):
        kept.add_line(float(number), "note", nth=number)
    for number in range(activity_log.MAX_SEEN + 5):
        kept.add_line(1.0, "seen", nth=number)
    kept.add_line(2.0, "started")
    lines = kept.lines_after(0, None)
    assert [(line["what"], line.get("nth")) for line in (lines[0], lines[9999], lines[-1])] == [
        ("note", 51),
        ("seen", 5),
        ("started", None),
    ]
    assert (len(kept.requests), len(lines), kept.dropped()) == (20000, 20000, {"lines": 56, "requests": 100})
    assert sum(each["count"] for each in kept.request_counts()) == 20100
    assert [line["what"] for line in kept.lines_after(lines[-2]["number"], None)] == ["started"]


def test_printed_log_has_control_characters_escaped():
    printed = []
    engine = Engine(default_scenario(), ManualClock(0), printed.append)
    engine.log("note", event="a\nb\x1b[31m", note="\u00e9")
    assert printed == ["1970-01-01T00:00:00.000Z - note a\\nb\\x1b[31m \u00e9"]


def notes(sim):
    return [(line["vm"], line["event"], line["note"]) for line in sim.log(what="note")]


def test_note_is_in_the_log_with_the_name_of_its_event(sim):
    before = len(notes(sim))
    event_id = schedule(sim, name="noted")["id"]
    assert sim.post("/notes", {"vm": "vm1", "what": "prepared"}) == {"vm": "vm1", "what": "prepared", "event": None}
    for event in ("noted", event_id.lower()):
        sim.post("/notes", {"vm": "vm2", "what": "is <empty>", "event": event})
    sim.post("/events/noted/complete")
    sim.post("/notes", {"vm": "vm1", "what": "recovered", "event": event_id})
    in_words = [("vm1", "", "prepared"), *[("vm2", "noted", "is <empty>")] * 2, ("vm1", "noted", "recovered")]
    assert notes(sim)[before:] == in_words


def test_log_refuses_a_kind_that_no_client_could_ask_for():
    with pytest.raises(ValueError, match="aproved"):
        activity_log.ActivityLog().add_line(0.0, "aproved")


NINES = "9" * 5000


@pytest.mark.parametrize(
    "method, path, body, problem",
    [
        ("GET", "/log?what=aproved", None, "what: 'aproved' is not one of scheduled, .*did you mean approved"),
        ("GET", "/log?vm=vm1", None, "vm: unknown key; known keys: after, what"),
        ("GET", "/requests?vm=vm9", None, "vm: there is no VM vm9 .did you mean vm"),
        ("GET", "/requests?what=approved", None, "what: unknown key; known keys: after, vm"),
        ("GET", "/requests?vm=vm9&aftr=1", None, "aftr: unknown key .did you mean after.*; vm: there is no VM"),
        ("GET", "/state?after_lines=1", None, "after_lines: unknown key .did you mean after_line"),
        ("POST", "/incarnation", {"group": "web", "to": 1, "at": 5}, "at: not allowed; the control API changes the"),
        ("POST", "/faults", {"kind": "gone", "from": "2020-01-31T12:00:00Z"}, "from: 2020-01-31.* is in the past"),
        ("GET", "/log?after=x", None, ""),
        ("GET", "/log?after=%C2%B2", None, ""),
        ("GET", "/log?after=" + NINES, None, ""),
        ("GET", "/requests?after=-1", None, ""),
        ("GET", "/state?after_line=-1", None, ""),
        ("DELETE", "/faults/%C2%B2", None, ""),
        ("DELETE", "/faults/" + NINES, None, ""),
        ("POST", "/faults", {"kind": "gone", "requests": NINES}, ""),
        ("POST", "/faults", {"kind": "trickle", "bytes_per_second": float("inf")}, ""),
        ("POST", "/faults", {"kind": []}, ""),
        ("POST", "/disable", {"group": ["web"]}, ""),
        ("POST", "/incarnation", {"group": "web"}, ""),
        ("POST", "/incarnation", {"group": "web", "to": "x"}, ""),
        ("POST", "/incarnation", {"group": "web", "to": 10**4299}, ""),
        ("POST", "/incarnation", {"group": "web", "add": -(10**4299)}, ""),
        ("POST", "/knobs", {"xff_status": 200}, ""),
        ("POST", "/advance", {"seconds": float("inf")}, ""),
        ("POST", "/events", {"type": "Freeze", "resources": [[]]}, ""),
        ("POST", "/fail", {"resources": 5}, ""),
        ("POST", "/notes", {"vm": "vm1"}, ""),
        ("POST", "/notes", {"vm": "vm1", "what": "x" * 201}, ""),
        ("POST", "/notes", {"vm": "vm1", "what": "two\nlines"}, ""),
        ("POST", "/notes", {"vm": "vm1", "what": "\x1b[2J"}, ""),
    ],
)
def test_odd_or_misspelt_input_is_400(sim, method, path, body, problem):
    before = notes(sim)
    error = expect_error(400, getattr(sim, method.lower()), path, *([body] if body else []))
    assert re.match(problem, error)
    assert sim.get("/health")["ok"] and notes(sim) == before


@pytest.mark.parametrize(
    "body, headers",
    [
        (b"{", {}),
        (b"[]", {}),
        (b"[" * 100000, {}),
        (b"{}", {"Content-Type": "application/json; charset=nonsense"}),
        (b"\xff\xfe", {}),
        (b'{"seconds": %s}' % NINES.encode(), {}),
        (b'{"seconds": 5}', {"Content-Encoding": "gzip"}),
    ],
)
def test_body_that_cannot_be_decoded_is_400(sim, body, headers):
    answer = send_request(sim.control, "/advance", "POST", {"Content-Type": "application/json", **headers}, body)
    assert answer.status == 400 and list(answer.json) == ["error"]


def test_nested_body_is_400_from_the_depth_that_cannot_be_written(sim):
    event = '{"type": "Freeze", "resources": ["vm1"], "extra": {"x": %s}}'
    statuses = []
    for depth in range(900, 1000):
        body = (event % ("[" * depth + "]" * depth)).encode()
        statuses.append(send_request(sim.control, "/events", "POST", {}, body).status)
        assert send_request(sim.endpoints["vm1"]).status == 200
    assert {*statuses} <= {201, 400} and statuses == sorted(statuses)
