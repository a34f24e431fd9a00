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
def event(sim):
    return schedule(sim, "vm1", "vm2")


def is_approved(sim, event):
    return sim.get(f"/events/{event}")["approved"]


def approvals_in_log(sim, event):
    lines = [line for line in sim.log(what="approval") if event in line["ids"]]
    return [(line["vm"], line.get("by"), line["status"], line["ids"]) for line in lines]


def test_acknowledge_approves_for_all_and_has_a_line_in_the_log(sim, event):
    answer = acknowledge(sim, path(event.lower(), "vm2"))
    assert (answer.status, answer.json) == (200, {"value": "Successfully approved scheduled event"})
    assert sim.get(f"/events/{event}")["approved_by"] == ["arm"]
    assert approvals_in_log(sim, event.lower()) == [("vm2", "arm", 200, [event.lower()])]
    newest = sim.get("/requests?vm=vm2")["requests"][-1]
    assert (newest["method"], newest["route"], newest["status"]) == ("POST", "arm", 200)
    sim.advance(1)
    assert sim.get(f"/events/{event}")["status"] == "Started"


def test_acknowledge_works_while_the_vm_refuses_connections(sim, event):
    sim.post("/faults", {"kind": "refuse", "vm": "vm1"})
    with pytest.raises(ConnectionRefusedError):
        send_request(sim.endpoints["vm1"])
    assert acknowledge(sim, path(event)).status == 200


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
def test_acknowledge_path_matches_in_any_spelling(sim, event, spelling):
    where = path(event)
    assert acknowledge(sim, "/arm" + spelling(where[len("/arm") :])).status == 200
    assert is_approved(sim, event)


@pytest.mark.parametrize("kind, name", [("virtualMachines", "pool_3"), ("virtualMachineScaleSets", "pool")])
def test_acknowledge_of_a_scale_set_by_its_vm_and_by_its_own_id(sim, kind, name):
    made = schedule(sim, "pool_3")
    assert acknowledge(sim, path(made, name, kind=kind)).status == 200
    assert is_approved(sim, made)


def test_acknowledge_with_another_token_than_the_configured_one_is_401(sim, event):
    sim.post("/knobs", {"arm_token": "right"})
    for headers in (TOKEN, {"Authorization": b"Bearer \xff\xfe"}):
        answer = acknowledge(sim, path(event), headers=headers)
        expect_error(401, "InvalidAuthenticationToken", answer)
    assert not is_approved(sim, event)
    assert acknowledge(sim, path(event), headers={"authorization": "bearer right"}).status == 200


@pytest.mark.parametrize(
    ("status", "code", "change", "request_"),
    [
        (401, "AuthenticationFailed", {}, {"headers": {}}),
        (401, "AuthenticationFailed", {}, {"headers": {"Authorization": "Basic YTpi"}}),
        (401, "AuthenticationFailed", {}, {"headers": {"Authorization": "Bearer "}}),
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
def test_acknowledge_error_changes_nothing(sim, event, status, code, change, request_):
    answer = acknowledge(sim, path(**{"event": event, **change}), **request_)
    expect_error(status, code, answer)
    assert (answer.headers["WWW-Authenticate"] or "").startswith("Bearer ") == (status == 401)
    assert not is_approved(sim, event)


def test_acknowledge_twice_and_after_the_start_has_the_same_answer(sim, event):
    answers = [acknowledge(sim, path(event)) for _time in range(2)]
    sim.advance(1)
    answers.append(acknowledge(sim, path(event)))
    assert [(each.status, each.json) for each in answers] == [(200, answers[0].json)] * 3
    assert [line["id"] for line in sim.log(what="approved")].count(event) == 1


def test_stable_version_has_its_answer_for_one_event_and_for_a_list(sim, event):
    other, third = (schedule(sim, "vm1") for _each in range(2))
    for answer in (acknowledge(sim, path(third), version=STABLE), acknowledge_list(sim, event, other.lower())):
        assert (answer.status, answer.json) == (200, {"value": "Successfully Approved"})
    assert all(is_approved(sim, each) for each in (event, other, third))
    assert approvals_in_log(sim, event) == [("vm1", "arm", 200, [event, other.lower()])]


def test_list_with_other_events_approves_the_rest_and_answers_207(sim, event):
    answer = acknowledge_list(sim, UNKNOWN, event)
    assert answer.status == 207 and answer.json["error"]["code"] == "MultiStatusResponse"
    details = answer.json["error"]["details"]
    assert [(each["target"], each["code"]) for each in details] == [(UNKNOWN, "NotFound"), (event, "OK")]
    assert all(each["message"] for each in details)
    assert is_approved(sim, event)


@pytest.mark.parametrize("body", [None, b"[", b"[]", b"{}", b'{"value": []}', b'{"value": [1]}', b'{"value": "a"}'])
def test_list_without_ids_is_400(sim, body):
    answer = acknowledge(sim, list_path(), version=STABLE, body=body)
    expect_error(400, "InvalidRequestContent", answer)


def test_list_is_not_an_operation_of_the_preview_nor_of_another_vm(sim, event):
    expect_error(405, "HttpMethodNotSupported", acknowledge_list(sim, event, version=PREVIEW))
    expect_error(404, "ResourceNotFound", acknowledge_list(sim, event, vm="vm9"))
    assert not is_approved(sim, event)


def test_stable_version_is_unknown_while_the_knob_is_off(sim, event):
    sim.post("/knobs", {"arm_stable_version": "off"})
    expect_error(400, "InvalidResourceType", acknowledge_list(sim, event))
    assert acknowledge(sim, path(event)).status == 200


def test_acknowledge_of_an_event_that_is_over_or_has_not_appeared_is_404(sim, event):
    completed, planned = schedule(sim, "vm1"), schedule(sim, "vm1", at=60)
    sim.post(f"/events/{event}/cancel")
    sim.post(f"/events/{completed}/complete")
    for each in (event, completed, planned):
        expect_error(404, "NotFound", acknowledge(sim, path(each)))


def test_status_fault_of_the_route_has_the_shape_of_its_errors(sim, event):
    fault = {"kind": "status", "status": 403, "route": "arm", "vm": "vm1", "requests": 1}
    sim.post("/faults", fault)
    expect_error(403, "InjectedFault", acknowledge(sim, path(event)))
    assert not is_approved(sim, event)
    assert acknowledge(sim, path(event)).status == 200
