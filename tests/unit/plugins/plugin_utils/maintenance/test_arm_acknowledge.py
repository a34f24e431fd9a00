# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to Azure Resource Manager, and what its answers mean."""

from __future__ import annotations

import json

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.arm_acknowledge import (
    acknowledge_url,
    changed_since,
    endpoint_problem,
    is_retried,
    outcome_of,
    token_problem,
    vm_of,
)

AZURE = "https://management.azure.com"
VM = "/subscriptions/8d5b8fe2/resourceGroups/my_group(1)/providers/Microsoft.Compute/virtualMachines/vm-1"
URL = (
    "https://management.azure.com/subscriptions/8d5b8fe2/resourcegroups/my_group(1)/providers/Microsoft.Compute"
    "/virtualMachines/vm-1/providers/Microsoft.Maintenance/scheduledevents/AB-1/acknowledge"
    "?api-version=2023-10-01-preview"
)
DECISION = {"event_id": "Ab-1", "resources": ["VM1", "vm2"]}
EVENT = {"key": "ab-1", "status": "Scheduled", "resources": ["vm1", "vm2"]}


@pytest.mark.parametrize("resource_id", [VM, VM + "/"])
def test_url_is_composed_of_the_id_of_the_vm(resource_id):
    assert acknowledge_url(AZURE + "/", resource_id, "AB-1") == URL
    assert vm_of(resource_id) == "vm-1"


@pytest.mark.parametrize(
    "resource_id",
    [
        "",
        "vm-1",
        VM + "/../../x",
        VM.replace("my_group(1)", ".."),
        VM + "?x=",
        VM + "\n",
        "https://elsewhere" + VM,
        # which VM it is has to be known
        VM + "/providers/microsoft.maintenance/scheduledevents/ab-1",
        VM.replace("virtualMachines/vm-1", "virtualMachineScaleSets/web"),
        VM.replace("virtualMachines/vm-1", "virtualMachineScaleSets/web/virtualMachines/0"),
    ],
)
def test_invalid_resource_id_is_an_error(resource_id):
    for function in (lambda: vm_of(resource_id), lambda: acknowledge_url(AZURE, resource_id, "AB-1")):
        with pytest.raises(ValueError, match="; write /subscriptions/"):
            function()


def test_event_id_cannot_change_the_path():
    assert "/scheduledevents/a%2F..%3Fb/acknowledge?" in acknowledge_url(AZURE, VM, "a/..?b")


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


@pytest.mark.parametrize(
    ("status", "code", "outcome", "reason"),
    [
        (200, "", "approved", "accepted"),
        (202, "", "approved", "accepted"),
        (302, "", "failed", "302"),
        (400, "InvalidResourceType", "failed", "InvalidResourceType: why"),
        (401, "InvalidAuthenticationToken", "failed", "get a new one"),
        (403, "AuthorizationFailed", "failed", "ScheduledEventContributor"),
        (404, "ResourceGroupNotFound", "failed", "check maintenance_arm_resource_id"),
        (404, "NotFound", "not_found", "is over or was cancelled"),
        (404, "", "not_found", "is over or was cancelled"),
        (409, "EventAlreadyStarted", "not_due", "in its present state"),
        (412, "", "not_due", "in its present state"),
        (429, "TooManyRequests", "failed", "does no harm"),
        (503, "", "failed", "does no harm"),
        (-1, "", "failed", "did not answer (no route)"),
    ],
)
def test_answer_has_an_outcome_and_a_remedy(status, code, outcome, reason):
    body = json.dumps({"error": {"code": code, "message": "why"}}) if code else "<html>"
    found = outcome_of(status, body, "no route")
    assert found.outcome == outcome and reason in found.reason


@pytest.mark.parametrize("body", ["", "[]", "null", '{"error": "x"}', '{"error": {"code": 1, "message": []}}'])
def test_body_without_an_error_of_azure_is_tolerated(body):
    assert outcome_of(403, body, "").outcome == "failed"


def test_only_temporary_failures_are_retried():
    assert [
        status for status in (-1, 200, 302, 400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 504) if is_retried(status)
    ] == [
        -1,
        408,
        429,
        500,
        502,
        503,
        504,
    ]


@pytest.mark.parametrize(
    ("read_again", "outcome"),
    [
        ({}, None),
        ({"skipped": True}, None),
        ({"available": True, "events": [EVENT]}, None),
        ({"available": True, "events": [dict(EVENT, resources=["vm2"])]}, None),
        ({"available": True, "events": [dict(EVENT, resources=["vm1", "vm3"])]}, "not_due"),
        ({"available": True, "events": [dict(EVENT, status="Started")]}, "started"),
        ({"available": True, "events": []}, "not_found"),
        ({"available": False, "reason": "no answer", "events": []}, "failed"),
        ({"unreachable": True, "msg": "no route"}, "failed"),
        ({"failed": True, "msg": "no module"}, "failed"),
    ],
)
def test_decision_holds_only_for_the_event_as_it_was(read_again, outcome):
    changed = changed_since(DECISION, read_again)
    assert (changed.outcome if changed else None) == outcome
