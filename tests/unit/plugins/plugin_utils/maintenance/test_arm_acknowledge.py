# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to Azure Resource Manager, and what its answers mean."""

from __future__ import annotations

import json

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.arm_acknowledge import (
    answers_of,
    changed_since,
    endpoint_problem,
    is_unknown_operation,
    list_requests,
    outcome_of,
    single_requests,
    token_problem,
    vm_of,
)

AZURE = "https://management.azure.com"
VM = "/subscriptions/8d5b8fe2/resourceGroups/my_group(1)/providers/Microsoft.Compute/virtualMachines/vm-1"
URL = (
    "https://management.azure.com/subscriptions/8d5b8fe2/resourcegroups/my_group(1)/providers/Microsoft.Compute"
    "/virtualMachines/vm-1/providers/Microsoft.Maintenance/scheduledevents"
)
APPROVED = '{"value": "Successfully Approved"}'
NOT_DETAILS = (None, "AB-1", {"target": "AB-1", "code": "OK"})
DECISION = {"event_id": "Ab-1", "event_type": "Freeze", "resources": ["VM1", "vm2"]}
EVENT = {**DECISION, "key": "ab-1", "status": "Scheduled", "resources": ["vm1", "vm2"]}


@pytest.mark.parametrize("resource_id", [VM, VM + "/"])
def test_requests_are_composed_of_the_id_of_the_vm(resource_id):
    ids = ("AB-1", "AB-2")
    assert list_requests(AZURE + "/", resource_id, ids) == [
        (URL + "?api-version=2025-11-01", ids, {"value": ["AB-1", "AB-2"]})
    ]
    assert single_requests(AZURE + "/", resource_id, ids) == [
        (URL + f"/{each}/acknowledge?api-version=2023-10-01-preview", (each,), None) for each in ids
    ]
    assert vm_of(resource_id) == "vm-1"


@pytest.mark.parametrize(
    "resource_id",
    [
        "",
        "vm-1",
        VM + "/../../x",
        VM + "\n",
        # which VM it is has to be known
        VM + "/providers/microsoft.maintenance/scheduledevents/ab-1",
        VM.replace("virtualMachines/vm-1", "virtualMachineScaleSets/web"),
        VM.replace("virtualMachines/vm-1", "virtualMachineScaleSets/web/virtualMachines/0"),
    ],
)
def test_invalid_resource_id_is_an_error(resource_id):
    for compose in (list_requests, single_requests):
        with pytest.raises(ValueError, match="; write /subscriptions/"):
            compose(AZURE, resource_id, ["AB-1"])


def test_event_id_cannot_change_the_path():
    assert "/scheduledevents/a%2F..%3Fb/acknowledge?" in single_requests(AZURE, VM, ["a/..?b"])[0].url


@pytest.mark.parametrize("endpoint", [AZURE, "https://management.usgovcloudapi.net/", "http://127.0.0.1:8168/arm"])
def test_endpoint_that_keeps_the_token_secret_is_accepted(endpoint):
    assert endpoint_problem(endpoint) == ""


@pytest.mark.parametrize(
    "endpoint", ["", "management.azure.com", "http://management.azure.com", "https://u@h", "https://h?x", "https://[x"]
)
def test_other_endpoints_have_a_problem(endpoint):
    assert endpoint_problem(endpoint)


def test_token_with_a_line_end_is_refused_without_showing_it():
    assert token_problem("eyJ0.a_b-c") == ""
    for token in ("", "secret\nX: y", "secret token", "secr\u00e9t"):
        assert token_problem(token) and "secr" not in token_problem(token)


def is_in_doubt(answer):
    return "whether it approved is unknown" in outcome_of(answer).reason


def outcome(status, body, problem="no route"):
    return outcome_of(answers_of(["AB-1"], status, body, problem)["AB-1"])


@pytest.mark.parametrize(
    ("status", "code", "wanted", "reason"),
    [
        (302, "", "failed", "302"),
        (400, "InvalidResourceType", "failed", "InvalidResourceType: why"),
        (401, "InvalidAuthenticationToken", "failed", "get a new one"),
        (403, "AuthorizationFailed", "failed", "ScheduledEventContributor"),
        (404, "ResourceGroupNotFound", "failed", "check maintenance_arm_resource_id"),
        (404, "", "not_found", "is over or was cancelled"),
        (409, "EventAlreadyStarted", "not_due", "in its present state"),
        (412, "", "not_due", "in its present state"),
        (429, "TooManyRequests", "failed", "does no harm"),
        (-1, "", "failed", "no valid answer (no route)"),
    ],
)
def test_error_has_an_outcome_and_a_remedy(status, code, wanted, reason):
    body = json.dumps({"error": {"code": code, "message": "why"}}) if code else "<html>"
    found = outcome(status, body)
    assert found.outcome == wanted and reason in found.reason


def test_documented_answer_approves_all_events_of_the_request():
    answers = answers_of(["AB-1", "AB-2"], 200, APPROVED, "")
    assert [outcome_of(answers[each]).outcome for each in ("AB-1", "AB-2")] == ["approved", "approved"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, ""),
        (200, "<html>"),
        (200, "{}"),
        # no document says what a list in an answer means
        (200, '{"value": ["AB-1"]}'),
        (200, '{"value": "Successfully Approved", "error": {"code": "InternalServerError"}}'),
        (202, APPROVED),
        *((207, json.dumps({"error": {"code": "MultiStatusResponse", "details": each}})) for each in NOT_DETAILS),
    ],
)
def test_answer_that_does_not_surely_approve_leaves_the_event_unknown(status, body):
    found = outcome(status, body, "")
    assert found.outcome == "failed" and "whether it approved is unknown" in found.reason


def of_list(*details):
    return 207, json.dumps({"error": {"code": "MultiStatusResponse", "message": "see details", "details": details}})


@pytest.mark.parametrize(
    ("details", "outcomes", "in_doubt"),
    [
        (
            [{"target": "AB-2", "code": "NotFound", "message": "why"}, {"target": "ab-1", "code": "OK"}],
            ["approved", "not_found"],
            [],
        ),
        ([{"target": "AB-1", "code": "Conflict"}, {"target": "AB-2", "code": "OK"}], ["not_due", "approved"], []),
        ([{"target": "AB-1", "code": "Forbidden"}, {"target": "AB-2", "code": "OK"}], ["failed", "approved"], []),
        # half of the list
        ([{"target": "AB-1", "code": "OK"}], ["approved", "failed"], ["AB-2"]),
        ([{"target": "AB-1", "code": "TooManyRequests"}, {"target": "AB-2", "code": "Fine"}], ["failed"] * 2, None),
        # which event it is about is not sure
        (
            [{"code": "OK"}, {"target": "AB-2", "code": "OK"}, {"target": "AB-2", "code": "Conflict"}],
            ["failed"] * 2,
            None,
        ),
        ([{"target": None, "code": 200}, [], "OK", {"target": "AB-2"}], ["failed"] * 2, None),
        ([], ["failed"] * 2, None),
    ],
)
def test_answer_to_a_list_is_read_per_event(details, outcomes, in_doubt):
    ids = ["AB-1", "AB-2"]
    answers = answers_of(ids, *of_list(*details), "")
    assert [outcome_of(answers[each]).outcome for each in ids] == outcomes
    assert [each for each in ids if is_in_doubt(answers[each])] == (ids if in_doubt is None else in_doubt)


@pytest.mark.parametrize("status", [404, 409, 412])
def test_refusal_of_a_list_leaves_each_event_unknown(status):
    body = json.dumps({"error": {"code": "NotFound", "message": "the event AB-1 is over"}})
    answers = answers_of(["AB-1", "AB-2"], status, body, "")
    assert {outcome_of(answer).outcome for answer in answers.values()} == {"failed"}
    assert all(map(is_in_doubt, answers.values())) and "AB-1 is over" in outcome_of(answers["AB-2"]).reason
    # the resource id of the VM is wrong for all of them
    body = json.dumps({"error": {"code": "ResourceNotFound", "message": "no VM"}})
    assert "check maintenance_arm_resource_id" in outcome_of(answers_of(["AB-1", "AB-2"], 404, body, "")["AB-1"]).reason


def test_texts_of_an_error_are_printable():
    body = json.dumps({"error": {"code": "Bad\u001b[2J\nX", "message": "\u202ewhy"}})
    assert outcome_of(answers_of(["AB-1"], 400, body, "")["AB-1"]).reason.isprintable()


@pytest.mark.parametrize(
    ("status", "code", "unknown"),
    [
        (400, "InvalidApiVersionParameter", True),
        (400, "InvalidResourceType", True),
        (404, "", True),
        (405, "", True),
        (400, "InvalidRequestContent", False),
        (404, "ResourceNotFound", False),
        # rights
        (403, "InvalidResourceType", False),
        (429, "", False),
        (500, "InvalidResourceType", False),
        (-1, "", False),
    ],
)
def test_only_an_unknown_version_or_operation_is_refused_for_good(status, code, unknown):
    body = json.dumps({"error": {"code": code, "message": "why"}}) if code else ""
    assert is_unknown_operation(answers_of(["AB-1"], status, body, "")["AB-1"]) is unknown


def test_only_temporary_failures_leave_the_approval_in_doubt():
    statuses = (-1, 200, 302, 400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 504)
    answers = {status: answers_of(["AB-1"], status, APPROVED, "")["AB-1"] for status in statuses}
    assert [status for status in statuses if is_in_doubt(answers[status])] == [-1, 408, 429, 500, 502, 503, 504]


@pytest.mark.parametrize(
    ("read_again", "outcome"),
    [
        ({}, None),
        ({"skipped": True}, None),
        ({"available": True, "events": [EVENT]}, None),
        ({"available": True, "events": [dict(EVENT, resources=["_vm1", "_VM2"])]}, None),
        ({"available": True, "events": [dict(EVENT, resources=["vm1"])]}, None),
        ({"available": True, "events": [dict(EVENT, resources=["vm2"])]}, "not_due"),
        ({"available": True, "events": [dict(EVENT, resources=["vm1", "vm3"])]}, "not_due"),
        ({"available": True, "events": [dict(EVENT, resources=[])]}, "not_due"),
        ({"available": True, "events": [dict(EVENT, event_type="Terminate")]}, "not_due"),
        ({"available": True, "events": [dict(EVENT, source="Autoscaler")]}, "not_due"),
        ({"available": True, "events": [dict(EVENT, status="Paused")]}, "not_due"),
        ({"available": True, "events": [dict(EVENT, status="Started")]}, "started"),
        ({"available": True, "events": []}, "not_found"),
        ({"available": False, "reason": "no answer", "events": []}, "failed"),
        ({"unreachable": True, "msg": "no route"}, "failed"),
        ({"failed": True, "msg": "no module"}, "failed"),
    ],
)
def test_decision_holds_only_for_the_event_as_it_was(read_again, outcome):
    changed = changed_since(DECISION, read_again, "Vm1")
    assert (changed.outcome if changed else None) == outcome
