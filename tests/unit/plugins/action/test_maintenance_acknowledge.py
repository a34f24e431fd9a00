# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of one attempt to approve through Azure Resource Manager."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.action.maintenance_acknowledge import ActionModule

OPTIONS = {
    "endpoint": "https://management.azure.com",
    "token": "eyJ0.ab",
    "resource_id": "/subscriptions/8d5b8fe2/resourceGroups/group/providers/Microsoft.Compute/virtualMachines/vm1",
    "decisions": [{"event_id": "Ab-1", "event_type": "Freeze", "resources": ["vm1"]}],
}


@pytest.mark.parametrize("answer", [{"msg": "no route"}, {"status": 429}, {"status": 503}], ids=str)
def test_request_that_failed_is_not_repeated_before_the_events_are_read_again(run_action, answer):
    result, requests = run_action(ActionModule, answer, **OPTIONS)
    assert result["failed"] and len(requests) == 1


@pytest.mark.parametrize(
    ("endpoint", "may_use_proxy"),
    [("http://127.0.0.1:8080", False), ("HTTPS://management.azure.com", True)],
)
def test_token_without_encryption_is_sent_to_no_proxy(run_action, endpoint, may_use_proxy):
    requests = run_action(ActionModule, {"status": 503}, **{**OPTIONS, "endpoint": endpoint})[1]
    assert [request["use_proxy"] for request in requests] == [may_use_proxy]
