# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The acknowledge of Azure Resource Manager over HTTP (docs/simulator.md, "Azure Resource Manager")."""

from __future__ import annotations

import http.client
import json

import pytest

from support.simulator.raw_http import send_request

SUBSCRIPTION = "00000000-0000-4000-8000-00005eed0001"
VERSION = "?api-version=2023-10-01-preview"
STABLE = "?api-version=2025-11-01"
UNKNOWN = "5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10"
TOKEN = {"Authorization": "Bearer any"}


def path(event, vm="vm1", *, kind="virtualMachines", subscription=SUBSCRIPTION, group="rg-simulated"):
    return (
        f"/arm/subscriptions/{subscription}/resourcegroups/{group}/providers/Microsoft.Compute/{kind}/{vm}"
        f"/providers/Microsoft.Maintenance/scheduledevents/{event}/acknowledge"
    )


def list_path(vm="vm1"):
    return path("", vm).removesuffix("//acknowledge")


def acknowledge(sim, where, *, headers=None, version=VERSION, method="POST", body=None):
    return send_request(sim.control, where + version, method, TOKEN if headers is None else headers, body)


def acknowledge_list(sim, *ids, vm="vm1", version=STABLE):
    return acknowledge(sim, list_path(vm), version=version, body=json.dumps({"value": ids}).encode())


def expect_error(status, code, answer):
    assert answer.status == status and answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json["error"]["code"] == code and answer.json["error"]["message"]
    assert list(answer.json) == ["error"]


@pytest.fixture
def event(frozen_simulator):
    return frozen_simulator.post("/events", {"type": "Reboot", "resources": ["vm1", "vm2"]})["id"]


def state(sim, event):
    return sim.get(f"/events/{event}")


def test_acknowledge_approves_for_all_and_has_a_line_in_the_log(frozen_simulator, event):
    answer = acknowledge(frozen_simulator, path(event.lower(), "vm2"))
    assert (answer.status, answer.json) == (200, {"value": "Successfully approved scheduled event"})
    assert state(frozen_simulator, event)["approved_by"] == ["arm"]
    (line,) = [each for each in frozen_simulator.get("/log?what=approval")["lines"] if event.lower() in each["ids"]]
    assert (line["by"], line["vm"], line["status"]) == ("arm", "vm2", 200)
    newest = frozen_simulator.get("/requests?vm=vm2")["requests"][-1]
    assert (newest["method"], newest["route"], newest["status"]) == ("POST", "arm", 200)
    frozen_simulator.advance(1)
    assert state(frozen_simulator, event)["status"] == "Started"


def test_acknowledge_works_while_the_vm_refuses_connections(start_simulator):
    sim = start_simulator(
        {"groups": {"web": {"vms": {"vm1": {}}}}, "faults": [{"kind": "refuse", "vm": "vm1"}]},
        args=["--clock", "manual"],
    )
    made = sim.post("/events", {"type": "Reboot", "resources": ["vm1"]})
    with pytest.raises(ConnectionRefusedError):
        send_request(sim.endpoints["vm1"])
    assert acknowledge(sim, path(made["id"])).status == 200


@pytest.mark.parametrize(
    "spelling",
    [
        str.lower,
        str.upper,
        lambda text: text.replace("resourcegroups", "resourceGroups").replace("vm1", "VM1"),
        lambda text: text.replace("vm1", "vm%31"),
    ],
)
def test_acknowledge_path_matches_in_any_spelling(frozen_simulator, event, spelling):
    where = path(event)
    assert acknowledge(frozen_simulator, "/arm" + spelling(where[len("/arm") :])).status == 200
    assert state(frozen_simulator, event)["approved"]


def test_acknowledge_of_a_scale_set_by_its_vm_and_by_its_own_id(frozen_simulator):
    for kind, name in (("virtualMachines", "pool_3"), ("virtualMachineScaleSets", "pool")):
        made = frozen_simulator.post("/events", {"type": "Reboot", "resources": ["pool_3"]})
        assert acknowledge(frozen_simulator, path(made["id"], name, kind=kind)).status == 200
        assert state(frozen_simulator, made["id"])["approved"]
    other = frozen_simulator.post("/events", {"type": "Reboot", "resources": ["vm1"]})
    expect_error(
        404,
        "ResourceNotFound",
        acknowledge(frozen_simulator, path(other["id"], "web", kind="virtualMachineScaleSets")),
    )


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer "}])
def test_acknowledge_without_a_bearer_token_is_401(frozen_simulator, event, headers):
    answer = acknowledge(frozen_simulator, path(event), headers=headers)
    expect_error(401, "AuthenticationFailed", answer)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert not state(frozen_simulator, event)["approved"]


def test_acknowledge_with_another_token_than_the_configured_one_is_401(frozen_simulator, event):
    frozen_simulator.post("/knobs", {"arm_token": "right"})
    expect_error(401, "InvalidAuthenticationToken", acknowledge(frozen_simulator, path(event)))
    not_utf_8 = acknowledge(frozen_simulator, path(event), headers={"Authorization": b"Bearer \xff\xfe"})
    expect_error(401, "InvalidAuthenticationToken", not_utf_8)
    assert not state(frozen_simulator, event)["approved"]
    assert acknowledge(frozen_simulator, path(event), headers={"authorization": "bearer right"}).status == 200


@pytest.mark.parametrize(
    ("status", "code", "change", "version", "method"),
    [
        (403, "AuthorizationFailed", {"group": "rg-other"}, VERSION, "POST"),
        (403, "AuthorizationFailed", {"subscription": "00000000-0000-4000-8000-00005eed0002"}, VERSION, "POST"),
        (404, "ResourceNotFound", {"vm": "vm9"}, VERSION, "POST"),
        (404, "ResourceNotFound", {"kind": "availabilitySets"}, VERSION, "POST"),
        (404, "NotFound", {"vm": "stranger"}, VERSION, "POST"),
        (404, "NotFound", {"event": UNKNOWN}, VERSION, "POST"),
        (404, "InvalidRequestUri", {"event": "a/b"}, VERSION, "POST"),
        (400, "MissingApiVersionParameter", {}, "", "POST"),
        (400, "InvalidResourceType", {}, "?api-version=2020-07-01", "POST"),
        (400, "InvalidResourceType", {}, VERSION + "&api-version=2023-10-01-preview", "POST"),
        (405, "HttpMethodNotSupported", {}, VERSION, "GET"),
    ],
)
def test_acknowledge_error_changes_nothing(frozen_simulator, event, status, code, change, version, method):
    where = path(**{"event": event, **change})
    expect_error(status, code, acknowledge(frozen_simulator, where, version=version, method=method))
    assert not state(frozen_simulator, event)["approved"]


def test_acknowledge_twice_and_after_the_start_has_the_same_answer(frozen_simulator, event):
    answers = [acknowledge(frozen_simulator, path(event)) for _time in range(2)]
    frozen_simulator.advance(1)
    answers.append(acknowledge(frozen_simulator, path(event)))
    assert [(each.status, each.json) for each in answers] == [(200, answers[0].json)] * 3
    approvals = [each for each in frozen_simulator.get("/log?what=approved")["lines"] if each["id"] == event]
    assert len(approvals) == 1


def test_acknowledge_of_the_stable_version_has_its_answer(frozen_simulator, event):
    answer = acknowledge(frozen_simulator, path(event), version=STABLE)
    assert (answer.status, answer.json) == (200, {"value": "Successfully Approved"})
    assert state(frozen_simulator, event)["approved"]


def test_list_approves_all_of_its_events_and_has_one_line_in_the_log(frozen_simulator, event):
    other = frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"]})["id"]
    answer = acknowledge_list(frozen_simulator, event, other.lower())
    assert (answer.status, answer.json) == (200, {"value": "Successfully Approved"})
    assert state(frozen_simulator, event)["approved"] and state(frozen_simulator, other)["approved"]
    (line,) = [each for each in frozen_simulator.get("/log?what=approval")["lines"] if event in each["ids"]]
    assert (line["vm"], line["status"], line["ids"]) == ("vm1", 200, [event, other.lower()])


def test_list_with_other_events_approves_the_rest_and_answers_207(frozen_simulator, event):
    answer = acknowledge_list(frozen_simulator, UNKNOWN, event)
    assert answer.status == 207 and answer.json["error"]["code"] == "MultiStatusResponse"
    details = answer.json["error"]["details"]
    assert [(each["target"], each["code"]) for each in details] == [(UNKNOWN, "NotFound"), (event, "OK")]
    assert all(each["message"] for each in details)
    assert state(frozen_simulator, event)["approved"]


@pytest.mark.parametrize("body", [None, b"[", b"[]", b"{}", b'{"value": []}', b'{"value": [1]}', b'{"value": "a"}'])
def test_list_without_ids_is_400(frozen_simulator, body):
    answer = acknowledge(frozen_simulator, list_path(), version=STABLE, body=body)
    expect_error(400, "InvalidRequestContent", answer)


def test_list_is_not_an_operation_of_the_preview(frozen_simulator, event):
    expect_error(405, "HttpMethodNotSupported", acknowledge_list(frozen_simulator, event, version=VERSION))
    expect_error(404, "ResourceNotFound", acknowledge_list(frozen_simulator, event, vm="vm9"))
    assert not state(frozen_simulator, event)["approved"]


def test_stable_version_is_unknown_while_the_knob_is_off(frozen_simulator, event):
    frozen_simulator.post("/knobs", {"arm_stable_version": "off"})
    expect_error(400, "InvalidResourceType", acknowledge_list(frozen_simulator, event))
    assert acknowledge(frozen_simulator, path(event)).status == 200


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_acknowledge_of_an_event_that_is_over_is_404(frozen_simulator, event, end):
    frozen_simulator.post(f"/events/{event}/{end}")
    expect_error(404, "NotFound", acknowledge(frozen_simulator, path(event)))


def test_acknowledge_of_an_event_that_has_not_appeared_is_404(frozen_simulator):
    made = frozen_simulator.post("/events", {"type": "Reboot", "resources": ["vm1"], "at": 60})
    expect_error(404, "NotFound", acknowledge(frozen_simulator, path(made["id"])))


def test_status_fault_of_the_route_has_the_shape_of_its_errors(frozen_simulator, event):
    fault = {"kind": "status", "status": 403, "route": "arm", "vm": "vm1", "requests": 1}
    frozen_simulator.post("/faults", fault)
    expect_error(403, "InjectedFault", acknowledge(frozen_simulator, path(event)))
    assert not state(frozen_simulator, event)["approved"]
    assert acknowledge(frozen_simulator, path(event)).status == 200


def test_lost_answer_fault_approves_without_an_answer(frozen_simulator, event):
    frozen_simulator.post("/faults", {"kind": "lost-answer", "route": "arm"})
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        acknowledge(frozen_simulator, path(event))
    assert state(frozen_simulator, event)["approved"]


def test_lost_request_fault_does_not_approve(frozen_simulator, event):
    frozen_simulator.post("/faults", {"kind": "lost-request", "route": "arm"})
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        acknowledge(frozen_simulator, path(event))
    assert not state(frozen_simulator, event)["approved"]


def test_faults_of_imds_and_of_the_control_plane_are_separate(frozen_simulator, event):
    frozen_simulator.post("/faults", {"kind": "unavailable"})
    assert send_request(frozen_simulator.endpoints["vm1"]).status == 503
    assert acknowledge(frozen_simulator, path(event)).status == 200
    frozen_simulator.delete("/faults")
    frozen_simulator.post("/faults", {"kind": "unavailable", "route": "arm"})
    assert send_request(frozen_simulator.endpoints["vm1"]).status == 200
    assert acknowledge(frozen_simulator, path(event)).status == 503
