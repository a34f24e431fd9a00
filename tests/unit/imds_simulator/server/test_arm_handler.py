# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The acknowledge of Azure Resource Manager over HTTP (docs/simulator.md, "Azure Resource Manager")."""

from __future__ import annotations

import json

import pytest

from support.simulator.raw_http import send_request

SUBSCRIPTION = "00000000-0000-4000-8000-00005eed0001"
PREVIEW, STABLE = "?api-version=2023-10-01-preview", "?api-version=2025-11-01"
UNKNOWN = "5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10"
TOKEN = {"Authorization": "Bearer any"}


def list_path(vm="vm1", *, kind="virtualMachines", subscription=SUBSCRIPTION, group="rg-simulated"):
    return (
        f"/arm/subscriptions/{subscription}/resourcegroups/{group}/providers/Microsoft.Compute/{kind}/{vm}"
        "/providers/Microsoft.Maintenance/scheduledevents"
    )


def path(event, vm="vm1", **more):
    return f"{list_path(vm, **more)}/{event}/acknowledge"


def acknowledge(sim, where, *, headers=TOKEN, version=PREVIEW, method="POST", body=None):
    return send_request(sim.control, where + version, method, headers, body)


def acknowledge_list(sim, *ids, vm="vm1", version=STABLE):
    return acknowledge(sim, list_path(vm), version=version, body=json.dumps({"value": ids}).encode())


def expect_error(status, code, answer):
    assert answer.status == status and answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json["error"]["code"] == code and answer.json["error"]["message"]
    assert list(answer.json) == ["error"]


def schedule(sim, *vms, **more):
    return sim.post("/events", {"type": "Reboot", "resources": vms, **more})["id"]


@pytest.fixture
def event(frozen_simulator):
    return schedule(frozen_simulator, "vm1", "vm2")


def is_approved(sim, event):
    return sim.get(f"/events/{event}")["approved"]


def approvals_in_log(sim, event):
    lines = sim.get("/log?what=approval")["lines"]
    return [(line["vm"], line.get("by"), line["status"], line["ids"]) for line in lines if event in line["ids"]]


def test_acknowledge_approves_for_all_and_has_a_line_in_the_log(frozen_simulator, event):
    answer = acknowledge(frozen_simulator, path(event.lower(), "vm2"))
    assert (answer.status, answer.json) == (200, {"value": "Successfully approved scheduled event"})
    assert frozen_simulator.get(f"/events/{event}")["approved_by"] == ["arm"]
    assert approvals_in_log(frozen_simulator, event.lower()) == [("vm2", "arm", 200, [event.lower()])]
    newest = frozen_simulator.get("/requests?vm=vm2")["requests"][-1]
    assert (newest["method"], newest["route"], newest["status"]) == ("POST", "arm", 200)
    frozen_simulator.advance(1)
    assert frozen_simulator.get(f"/events/{event}")["status"] == "Started"


def test_acknowledge_works_while_the_vm_refuses_connections(frozen_simulator, event):
    frozen_simulator.post("/faults", {"kind": "refuse", "vm": "vm1"})
    with pytest.raises(ConnectionRefusedError):
        send_request(frozen_simulator.endpoints["vm1"])
    assert acknowledge(frozen_simulator, path(event)).status == 200


@pytest.mark.parametrize(
    "spelling",
    [
        str.lower,
        str.upper,
        lambda text: text.replace("resourcegroups", "resourceGroups").replace("vm1", "VM1"),
        lambda text: text.replace("vm1", "vm%31"),
        lambda text: f"/{text}/",
    ],
)
def test_acknowledge_path_matches_in_any_spelling(frozen_simulator, event, spelling):
    where = path(event)
    assert acknowledge(frozen_simulator, "/arm" + spelling(where[len("/arm") :])).status == 200
    assert is_approved(frozen_simulator, event)


@pytest.mark.parametrize("kind, name", [("virtualMachines", "pool_3"), ("virtualMachineScaleSets", "pool")])
def test_acknowledge_of_a_scale_set_by_its_vm_and_by_its_own_id(frozen_simulator, kind, name):
    made = schedule(frozen_simulator, "pool_3")
    assert acknowledge(frozen_simulator, path(made, name, kind=kind)).status == 200
    assert is_approved(frozen_simulator, made)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer "}])
def test_acknowledge_without_a_bearer_token_is_401(frozen_simulator, event, headers):
    answer = acknowledge(frozen_simulator, path(event), headers=headers)
    expect_error(401, "AuthenticationFailed", answer)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert not is_approved(frozen_simulator, event)


def test_acknowledge_with_another_token_than_the_configured_one_is_401(frozen_simulator, event):
    frozen_simulator.post("/knobs", {"arm_token": "right"})
    for headers in (TOKEN, {"Authorization": b"Bearer \xff\xfe"}):
        answer = acknowledge(frozen_simulator, path(event), headers=headers)
        expect_error(401, "InvalidAuthenticationToken", answer)
    assert not is_approved(frozen_simulator, event)
    assert acknowledge(frozen_simulator, path(event), headers={"authorization": "bearer right"}).status == 200


@pytest.mark.parametrize(
    ("status", "code", "change", "request_"),
    [
        (403, "AuthorizationFailed", {"group": "rg-other"}, {}),
        (403, "AuthorizationFailed", {"subscription": "00000000-0000-4000-8000-00005eed0002"}, {}),
        (404, "ResourceNotFound", {"vm": "vm9"}, {}),
        (404, "ResourceNotFound", {"kind": "availabilitySets"}, {}),
        (404, "ResourceNotFound", {"vm": "web", "kind": "virtualMachineScaleSets"}, {}),
        (404, "NotFound", {"vm": "stranger"}, {}),
        (404, "NotFound", {"event": UNKNOWN}, {}),
        (404, "InvalidRequestUri", {"event": "a/b"}, {}),
        (400, "MissingApiVersionParameter", {}, {"version": ""}),
        (400, "InvalidResourceType", {}, {"version": "?api-version=2020-07-01"}),
        (400, "InvalidResourceType", {}, {"version": PREVIEW + "&api-version=2023-10-01-preview"}),
        (405, "HttpMethodNotSupported", {}, {"method": "GET"}),
    ],
)
def test_acknowledge_error_changes_nothing(frozen_simulator, event, status, code, change, request_):
    where = path(**{"event": event, **change})
    expect_error(status, code, acknowledge(frozen_simulator, where, **request_))
    assert not is_approved(frozen_simulator, event)


def test_acknowledge_twice_and_after_the_start_has_the_same_answer(frozen_simulator, event):
    answers = [acknowledge(frozen_simulator, path(event)) for _time in range(2)]
    frozen_simulator.advance(1)
    answers.append(acknowledge(frozen_simulator, path(event)))
    assert [(each.status, each.json) for each in answers] == [(200, answers[0].json)] * 3
    approvals = [each for each in frozen_simulator.get("/log?what=approved")["lines"] if each["id"] == event]
    assert len(approvals) == 1


def test_stable_version_has_its_answer_for_one_event_and_for_a_list(frozen_simulator, event):
    other, third = (schedule(frozen_simulator, "vm1") for _each in range(2))
    for answer in (
        acknowledge(frozen_simulator, path(third), version=STABLE),
        acknowledge_list(frozen_simulator, event, other.lower()),
    ):
        assert (answer.status, answer.json) == (200, {"value": "Successfully Approved"})
    assert all(is_approved(frozen_simulator, each) for each in (event, other, third))
    assert approvals_in_log(frozen_simulator, event) == [("vm1", "arm", 200, [event, other.lower()])]


def test_list_with_other_events_approves_the_rest_and_answers_207(frozen_simulator, event):
    answer = acknowledge_list(frozen_simulator, UNKNOWN, event)
    assert answer.status == 207 and answer.json["error"]["code"] == "MultiStatusResponse"
    details = answer.json["error"]["details"]
    assert [(each["target"], each["code"]) for each in details] == [(UNKNOWN, "NotFound"), (event, "OK")]
    assert all(each["message"] for each in details)
    assert is_approved(frozen_simulator, event)


@pytest.mark.parametrize("body", [None, b"[", b"[]", b"{}", b'{"value": []}', b'{"value": [1]}', b'{"value": "a"}'])
def test_list_without_ids_is_400(frozen_simulator, body):
    answer = acknowledge(frozen_simulator, list_path(), version=STABLE, body=body)
    expect_error(400, "InvalidRequestContent", answer)


def test_list_is_not_an_operation_of_the_preview_nor_of_another_vm(frozen_simulator, event):
    expect_error(405, "HttpMethodNotSupported", acknowledge_list(frozen_simulator, event, version=PREVIEW))
    expect_error(404, "ResourceNotFound", acknowledge_list(frozen_simulator, event, vm="vm9"))
    assert not is_approved(frozen_simulator, event)


def test_stable_version_is_unknown_while_the_knob_is_off(frozen_simulator, event):
    frozen_simulator.post("/knobs", {"arm_stable_version": "off"})
    expect_error(400, "InvalidResourceType", acknowledge_list(frozen_simulator, event))
    assert acknowledge(frozen_simulator, path(event)).status == 200


def test_acknowledge_of_an_event_that_is_over_or_has_not_appeared_is_404(frozen_simulator, event):
    completed, planned = schedule(frozen_simulator, "vm1"), schedule(frozen_simulator, "vm1", at=60)
    frozen_simulator.post(f"/events/{event}/cancel")
    frozen_simulator.post(f"/events/{completed}/complete")
    for each in (event, completed, planned):
        expect_error(404, "NotFound", acknowledge(frozen_simulator, path(each)))


def test_status_fault_of_the_route_has_the_shape_of_its_errors(frozen_simulator, event):
    fault = {"kind": "status", "status": 403, "route": "arm", "vm": "vm1", "requests": 1}
    frozen_simulator.post("/faults", fault)
    expect_error(403, "InjectedFault", acknowledge(frozen_simulator, path(event)))
    assert not is_approved(frozen_simulator, event)
    assert acknowledge(frozen_simulator, path(event)).status == 200
