# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The control API (docs/simulator.md, "Control API")."""

from __future__ import annotations

import json

import pytest

from support.simulator.raw_http import approve, ask
from support.simulator_process import ControlError


def schedule(sim, **more):
    return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], **more})


def shown(sim, vm="vm1"):
    return ask(sim.endpoints[vm]).json["Events"]


def refused(status, call, *arguments):
    with pytest.raises(ControlError) as caught:
        call(*arguments)
    assert caught.value.status == status and list(caught.value.body) == ["error"]
    return caught.value.body["error"]


def test_schedule_shows_the_event_and_its_hidden_state(still):
    made = schedule(still, name="mine", notice="5m", source="User", description="d", duration=3)
    assert (made["status"], made["name"], made["approved"], made["approved_by"]) == ("Scheduled", "mine", False, [])
    (event,) = shown(still)
    assert (event["EventId"], event["Description"], event["EventSource"], event["DurationInSeconds"]) == (
        made["id"],
        "d",
        "User",
        3,
    )
    assert still.get("/events/mine")["id"] == still.get("/events/" + made["id"].lower())["id"] == made["id"]
    assert "mine" in [each["name"] for each in still.get("/events")["events"]]


def test_schedule_for_later_and_after_another(still):
    first = schedule(still, at=30, starts="automatic_approval", started_for=60)
    schedule(still, name="next", after=first["name"], at=5)
    assert shown(still) == []
    still.advance(30)
    assert [event["EventStatus"] for event in shown(still)] == ["Started"]
    still.advance(60)
    assert shown(still) == []
    still.advance(5)
    assert [event["EventStatus"] for event in shown(still)] == ["Scheduled"]


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
def test_what_cannot_be_scheduled_is_400_and_says_why(still, body, text):
    assert text in refused(400, still.post, "/events", body)


def test_names_of_events_are_unique(still):
    schedule(still, name="only-once")
    assert "only-once already" in refused(
        400, still.post, "/events", {"type": "Freeze", "resources": ["vm1"], "name": "only-once"}
    )


def test_approve_as_control_plane_other_tenants_and_vm(still):
    held = schedule(still, hold=True)["id"]
    assert still.post(f"/events/{held}/approve", {"as": "vm2"})["approved_by"] == ["vm2"]
    assert still.post(f"/events/{held}/approve")["approved_by"] == ["control-plane", "vm2"]
    still.advance(5)
    assert shown(still)[0]["EventStatus"] == "Scheduled"
    still.post(f"/events/{held}/approve", {"as": "other-tenants"})
    assert shown(still)[0]["EventStatus"] == "Scheduled"
    still.advance(1)
    assert shown(still)[0]["EventStatus"] == "Started"
    assert "not Scheduled" in refused(409, still.post, f"/events/{held}/approve")
    other = schedule(still)["id"]
    assert "there is no approver" in refused(400, still.post, f"/events/{other}/approve", {"as": "me"})
    assert "does not see" in refused(409, still.post, f"/events/{other}/approve", {"as": "stranger"})


def test_cancel_complete_and_change(still):
    event = schedule(still)["id"]
    assert (
        still.post(f"/events/{event}/change", {"type": "Reboot", "resources": ["vm1", "vm2"], "notice": 60})["type"]
        == "Reboot"
    )
    assert shown(still)[0]["Resources"] == ["vm1", "vm2"]
    assert still.post(f"/events/{event}/change", {"status": "Started"})["status"] == "Started"
    assert "cancelled" in refused(409, still.post, f"/events/{event}/cancel")
    assert still.post(f"/events/{event}/change", {"status": "Scheduled", "notice": 60})["status"] == "Scheduled"
    assert still.post(f"/events/{event}/cancel")["cancelled"]
    assert shown(still) == [] and "it has ended" in refused(409, still.post, f"/events/{event}/complete")
    other = schedule(still)["id"]
    assert still.post(f"/events/{other}/complete")["status"] == "Gone"


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
def test_changes_that_cannot_be(still, body, text):
    event = schedule(still)["id"]
    assert text in refused(400, still.post, f"/events/{event}/change", body)


def test_hardware_failure(still):
    failed = still.post("/fail", {"vm": "vm2"})
    assert (failed["status"], failed["type"], failed["resources"]) == ("Started", "Reboot", ["vm2"])
    assert still.post("/fail", {"resources": ["vm1", "vm2"], "type": "Redeploy"})["type"] == "Redeploy"
    assert [event["EventStatus"] for event in shown(still)] == ["Started", "Started"]
    assert "resources" in refused(400, still.post, "/fail", {})


def test_unknown_events_and_paths_are_404_as_json(still):
    assert "nothing" in refused(404, still.post, "/events/nothing/cancel")
    refused(404, still.get, "/nowhere")
    refused(405, still.delete, "/events")


def test_advance_moves_the_clock_and_rejects_nonsense(still):
    before = still.get("/state")["unix"]
    assert still.post("/advance", {"seconds": "2m"})["unix"] == before + 120
    assert "missing" in refused(400, still.post, "/advance", {})
    assert "not a duration" in refused(400, still.post, "/advance", {"seconds": -1})


def test_knobs_can_be_read_and_turned(still):
    assert still.get("/knobs")["etag"] is True
    assert still.post("/knobs", {"etag": False, "notice_overrides": {"Freeze": 60}})["notice_overrides"]["Freeze"] == 60
    assert "no knob" in refused(400, still.post, "/knobs", {"nope": 1})


def test_incarnation_and_disable(still):
    ask(still.endpoints["vm1"])
    assert still.post("/incarnation", {"group": "web", "to": 500}) == {"incarnation": [500]}
    assert still.post("/incarnation", {"group": "web", "add": -3}) == {"incarnation": [497]}
    assert ask(still.endpoints["vm2"]).json["DocumentIncarnation"] == 497
    assert still.post("/disable", {"group": "web"}) == {"scopes": ["web"]}
    assert not still.get("/state")["scopes"]["web"]["enabled"]
    assert ask(still.endpoints["vm2"]).json["DocumentIncarnation"] == 1
    assert "there is no group" in refused(400, still.post, "/disable", {"group": "x"})
    assert "not a whole number" in refused(400, still.post, "/incarnation", {"group": "web", "to": "x"})


def test_state_says_everything(still):
    schedule(still)
    still.post("/faults", {"kind": "gone", "vm": "vm2", "for": "70s", "route": "instance"})
    state = still.get("/state")
    assert state["vms"]["vm1"]["endpoint"] == still.endpoints["vm1"] and state["vms"]["vm1"]["scope"] == "web"
    assert {"now", "unix", "speed", "epoch", "title", "scopes", "events", "faults"} <= set(state)
    assert (state["faults"][0]["kind"], state["faults"][0]["vms"], state["faults"][0]["active"]) == (
        "gone",
        ["vm2"],
        True,
    )


def test_health_and_index(still):
    assert still.get("/health") == {"ok": True, "title": "tests", "vms": 5}
    assert "POST /events/{event}/approve" in still.get("/")["endpoints"]
    assert "empty" in still.get("/fault-kinds")


def test_faults_can_be_listed_and_cleared_by_number(still):
    numbers = [still.post("/faults", {"kind": kind})["number"] for kind in ("empty", "gone")]
    assert [each["number"] for each in still.get("/faults")["faults"]] == numbers
    assert still.delete(f"/faults/{numbers[0]}") == {"cleared": 1}
    assert ask(still.endpoints["vm1"]).status == 410
    refused(400, still.delete, f"/faults/{numbers[0]}")
    assert still.delete("/faults") == {"cleared": 1}
    assert "did you mean empty?" in refused(400, still.post, "/faults", {"kind": "emty"})


def test_the_log_says_who_asked_and_approved_what_when(still):
    last = still.get("/log")["lines"][-1]["number"]
    event = schedule(still, name="logged")["id"]
    approve(still.endpoints["vm2"], event)
    approve(still.endpoints["vm2"], "nonsense")
    still.advance(2)
    lines = still.get(f"/log?after={last}")["lines"]
    told = [(line["what"], line.get("vm") or line.get("by"), line.get("status")) for line in lines]
    assert told[:5] == [
        ("scheduled", None, None),
        ("approval", "vm2", 200),
        ("approved", "vm2", None),
        ("approval", "vm2", 400),
        ("started", None, None),
    ]
    assert all(line["time"].endswith("Z") for line in lines)
    assert [line["ids"] for line in lines if line["what"] == "approval"] == [[event], ["nonsense"]]
    assert [line["what"] for line in still.get(f"/log?what=approval&after={last}")["lines"]] == [
        "approval",
        "approval",
    ]
    refused(400, still.get, "/log?after=x")


def test_requests_are_counted_and_the_recent_ones_kept(still):
    last = still.get("/requests")["requests"][-1]["number"]
    ask(still.endpoints["vm2"])
    ask(still.endpoints["vm1"], "/metadata/versions", headers={})
    got = still.get(f"/requests?after={last}")
    assert [(each["vm"], each["route"], each["method"], each["status"]) for each in got["requests"]] == [
        ("vm2", "scheduledevents", "GET", 200),
        ("vm1", "versions", "GET", 400),
    ]
    assert [each["vm"] for each in still.get(f"/requests?vm=vm1&after={last}")["requests"]] == ["vm1"]
    assert {"vm": "vm1", "method": "GET", "route": "versions", "status": 400} in [
        {key: each[key] for key in ("vm", "method", "route", "status")} for each in got["counts"]
    ]


def test_the_rings_are_bounded():
    from imds_simulator.server import activity_log as journal

    kept = journal.ActivityLog()
    for number in range(journal.MAX_REQUESTS + 100):
        kept.add_request(0.0, f"vm{number % 7}", "GET", "scheduledevents", "2020-07-01", 200, "", "127.0.0.1")
    for number in range(journal.MAX_LINES + 50):
        kept.add_line(float(number), "x")
    assert (len(kept.requests), len(kept.lines), kept.dropped()) == (20000, 10000, {"lines": 50, "requests": 100})
    assert sum(each["count"] for each in kept.request_counts()) == 20100


def test_bodies_that_are_no_json_are_400(still):
    import urllib.error
    import urllib.request

    request = urllib.request.Request(still.control + "/advance", data=b"{", method="POST")
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
        ("POST", "/knobs", {"xff_status": 200}),
        ("POST", "/knobs", {"max_body": "\u00b2"}),
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
def test_odd_input_is_400(still, method, path, body):
    refused(400, still.call, method, path, body)
    assert still.get("/health")["ok"]


@pytest.mark.parametrize(
    "body, kind",
    [
        (b"[" * 100000, "application/json"),
        (b"{}", "application/json; charset=nonsense"),
        (b"\xff\xfe", "application/json"),
        (b'{"seconds": %s}' % NINES.encode(), "application/json"),
    ],
)
def test_bodies_that_cannot_be_decoded_are_400(still, body, kind):
    assert ask(still.control, "/advance", "POST", {"Content-Type": kind}, body).status == 400


def test_what_has_not_appeared_cannot_change_its_notice(still):
    schedule(still, name="not-yet", at=60)
    for body in ({"notice": 60}, {"status": "Started"}, {"action": "impact", "impact_for": 5}):
        assert "has not appeared yet" in refused(409, still.post, "/events/not-yet/change", body)
    assert still.post("/events/not-yet/change", {"description": "new"})["description"] == "new"


def test_the_log_has_dates(still):
    made = schedule(still, name="dated", notice="5m")
    (line,) = [line for line in still.get("/log?what=scheduled")["lines"] if line["id"] == made["id"]]
    assert line["not_before"] == made["not_before"]
