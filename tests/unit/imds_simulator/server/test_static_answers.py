# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Static answers for routes that the simulator does not have, over real sockets."""

from __future__ import annotations

import pytest

from imds_simulator.testing import ControlError, Simulator
from support.simulator.raw_http import HEADER, request_bytes, send_raw, send_request

TOKEN = "/metadata/identity/oauth2/token"
ANSWERS = [
    {"path": TOKEN, "name": "identity", "vm": "vm2", "status": 400, "json": {"error": "invalid_request"}},
    {"path": TOKEN, "name": "identity", "json": {"access_token": "ü"}, "headers": {"X-Kind": "token"}},
    {"path": "/machine/", "query": {"comp": "goalstate"}, "content_type": "text/xml", "body": "<GoalState/>"},
    {"path": "/price", "headers": {"X-Price": "5 €"}, "body": "ok"},
    {"path": "/machine", "query": {"comp": "health"}, "method": "POST", "status": 204},
    {"path": "/HostGAPlugin/*", "method": "any", "group": "lone", "body_base64": "AP8="},
    {"path": "/metadata/loadbalancer", "require_metadata_header": False, "json": []},
]
SCENARIO = {
    "groups": {"web": {"vms": {"vm1": {}, "vm2": {}}}, "lone": {"vms": {"vm3": {}}}},
    "answers": ANSWERS,
    "knobs": {"rate_limit": 0},
}


@pytest.fixture(scope="module")
def simulator():
    with Simulator(SCENARIO) as running:
        yield running


def test_answer_depends_on_vm_method_and_query(simulator):
    vm1, vm2, vm3 = (simulator.endpoints[name] for name in ("vm1", "vm2", "vm3"))
    answer = send_request(vm1, TOKEN + "?api-version=2018-02-01&resource=x")
    assert (answer.status, answer.json, answer.headers["X-Kind"]) == (200, {"access_token": "ü"}, "token")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["Server"].startswith("IMDS/")
    assert send_request(vm2, TOKEN).json == {"error": "invalid_request"}
    not_allowed = send_request(vm1, TOKEN, "POST", body=b"{}")
    assert (not_allowed.status, not_allowed.headers["Allow"]) == (405, "GET")
    for path in ("/machine?comp=goalstate", "/machine/?x=1&comp=goalstate", "/MACHINE?comp=goalstate"):
        answer = send_request(vm1, path, headers={})
        assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, b"<GoalState/>", "text/xml")
    assert send_request(vm1, "/machine?comp=health", "POST", {}, b"<Health/>").status == 204
    assert send_request(vm1, "/machine?comp=other").status == 404
    assert send_request(vm3, "/HostGAPlugin/status/x", "PUT", {}, b"x").body == b"\x00\xff"
    assert send_request(vm1, "/HostGAPlugin/status/x").status == 404


def test_metadata_header_is_required_below_metadata_unless_the_answer_says_otherwise(simulator):
    vm1 = simulator.endpoints["vm1"]
    assert send_request(vm1, TOKEN, headers={}).status == 400
    assert send_request(vm1, TOKEN, headers={**HEADER, "X-Forwarded-For": "x"}).status == 400
    assert send_request(vm1, TOKEN + "?a=1&a=2").status == 400
    assert send_request(vm1, "/metadata/loadbalancer", headers={}).json == []


def test_truncated_answer_has_its_headers_with_any_text(simulator):
    simulator.post("/faults", {"kind": "truncated", "vm": "vm1", "requests": 1})
    assert "X-Price: 5 €".encode() in send_raw(simulator.endpoint, request_bytes("/price"))


def test_fault_and_log_have_the_name_of_the_route(simulator):
    vm1 = simulator.endpoints["vm1"]
    last = simulator.get("/requests")["requests"][-1:]
    simulator.post("/faults", {"kind": "unavailable", "route": "identity", "requests": 1})
    simulator.post("/faults", {"kind": "gone", "route": "/metadata/loadbalancer"})
    assert [send_request(vm1, TOKEN).status for _each in range(2)] == [503, 200]
    assert send_request(vm1, "/metadata/loadbalancer").status == 410
    after = last[0]["number"] if last else 0
    logged = simulator.get(f"/requests?after={after}")["requests"]
    assert [(each["route"], each["fault"]) for each in logged] == [
        ("identity", "unavailable"),
        ("identity", ""),
        ("/metadata/loadbalancer", "gone"),
    ]
    with pytest.raises(ControlError, match=r"route: 'identiti' is not one of .*did you mean identity"):
        simulator.post("/faults", {"kind": "gone", "route": "identiti"})


def test_static_answers_count_for_the_rate_limit(start_simulator):
    sim = start_simulator("other-routes")
    sim.post("/knobs", {"strict": True})
    statuses = [send_request(sim.endpoints["vm1"], TOKEN).status for _each in range(6)]
    assert statuses == [503] + [200] * 4 + [429]
    assert send_request(sim.endpoints["vm2"], "/?comp=versions", headers={}).body.startswith(b"<?xml")
    assert send_request(sim.endpoints["vm2"], "/", headers={}).status == 404
    assert sim.get("/log?what=enabled")["lines"] == []
