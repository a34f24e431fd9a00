# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    EventDocument,
    OwnNameUnknown,
    ScheduledEvent,
    Selection,
    Tracker,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.approval_plan import (
    ApprovalCriteria,
    plan_approvals,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.policy import Policy
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.receipts import (
    Receipts,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def event(event_id, **values):
    usual = ScheduledEvent(
        event_id, "Reboot", "Scheduled", ("vm1",), "VirtualMachine", NOW + timedelta(minutes=9), "", "User", None
    )
    return usual._replace(**values)


@pytest.fixture
def plan(tmp_path):
    receipts = Receipts(str(tmp_path), "http://127.0.0.1")

    def planned(*events, own_name="vm1", noted=(), doubtful=(), **options):
        for event_id in noted:
            receipts.write(event_id, "2026-11-21T11:59:00Z")
        criteria = {
            name: options.pop(name) for name in ("release_others", "policy", "prepared", "gates") if name in options
        }
        found = plan_approvals(
            Tracker().observe(EventDocument(1, events, server_time=NOW, doubtful=doubtful)),
            ApprovalCriteria(Selection.parse(options), own_name, **criteria),
            receipts,
        )
        return [(item.event_id, item.outcome) for item in found]

    return planned


def test_plan_approves_selected_events(plan):
    assert plan(event("A"), event("B", source="Platform"), sources=["User"]) == [("A", "approve")]


def test_plan_with_an_unlisted_id_approves_the_others(plan):
    assert plan(event("A"), event("B"), event_ids=["x", "b", "a"]) == [
        ("x", "not_found"),
        ("A", "approve"),
        ("B", "approve"),
    ]


def test_plan_does_not_approve_a_started_event(plan):
    assert plan(event("A", status="Started", not_before=None), event_ids=["A"]) == [("A", "started")]


def test_plan_does_not_approve_an_unknown_status_even_by_id(plan):
    assert plan(event("A", status="Paused"), event_ids=["A"]) == [("A", "not_due")]


@pytest.mark.parametrize("values", [{"event_type": "Hibernate"}, {"source": "Robot"}, {"resource_type": "Disk"}])
def test_plan_approves_an_unknown_value_only_by_id_or_type(plan, values):
    unknown = event("A", **values)
    assert plan(unknown, statuses=["Scheduled"]) == [("A", "not_due")]
    assert plan(unknown, types=["Hibernate", "Reboot"]) == [("A", "approve")]
    assert plan(unknown, event_ids=["A"]) == [("A", "approve")]
    assert plan(unknown, event_ids=["A"], policy=Policy.from_mapping({"rules": [{"when": {}, "approve": "now"}]})) == [
        ("A", "not_due")
    ]


def test_plan_approves_an_advice_only_by_id_or_type(plan):
    advice = event("A", event_type="SpotRebalanceRecommendation")
    assert plan(advice, sources=["User"]) == []
    assert plan(advice, types=["spotrebalancerecommendation"]) == [("A", "approve")]
    assert plan(advice, event_ids=["A"]) == [("A", "approve")]


def test_plan_approves_events_of_others_only_with_release_others(plan):
    both = event("A", resources=("vm1", "vm2"))
    assert plan(both, event_ids=["A"]) == [("A", "others_affected")]
    assert plan(both, event_ids=["A"], release_others=True) == [("A", "approve")]


@pytest.mark.parametrize("resources, doubtful", [((), ()), (("vm1", "5"), ("a",))])
def test_plan_approves_no_event_whose_vms_are_not_readable(plan, resources, doubtful):
    unreadable = event("A", resources=resources)
    for release_others in (False, True):
        options = {"event_ids": ["A"], "affects": "any", "release_others": release_others}
        assert plan(unreadable, doubtful=doubtful, **options) == [("A", "not_due")]


def test_plan_for_an_event_of_other_vms_needs_two_options(plan):
    other = event("A", resources=("vm2",))
    assert plan(other, event_ids=["A"]) == [("A", "not_selected")]
    assert plan(other, sources=["User"]) == []
    assert plan(other, event_ids=["A"], affects="any") == [("A", "others_affected")]
    assert plan(other, event_ids=["A"], affects="any", release_others=True) == [("A", "approve")]


def test_plan_with_a_receipt_is_already_approved(plan):
    assert plan(event("A"), event("B"), noted=["a"], sources=["User"]) == [("A", "already_approved"), ("B", "approve")]


def test_plan_with_a_policy_approves_within_the_selection(plan):
    policy = Policy.preset("documented")
    freeze = event("B", event_type="Freeze", source="Platform", duration=timedelta(seconds=30))
    assert plan(event("A"), freeze, policy=policy) == [("A", "approve"), ("B", "not_due")]


def test_plan_passes_preparation_and_gates_to_the_policy(plan):
    policy = Policy.from_mapping({"rules": [{"when": {"gate": "quorum"}, "approve": "after_prepare"}]})
    assert plan(event("A"), policy=policy, prepared="ok") == [("A", "not_due")]
    assert plan(event("A"), policy=policy, prepared="failed", gates={"quorum": True}) == [("A", "not_due")]
    assert plan(event("A"), policy=policy, prepared="ok", gates={"quorum": True}) == [("A", "approve")]


def test_plan_without_own_name_raises(plan):
    with pytest.raises(OwnNameUnknown):
        plan(event("A"), own_name=None, event_ids=["A"])
    with pytest.raises(OwnNameUnknown):
        plan(event("A"), own_name=None, event_ids=["A"], affects="any")
    assert plan(event("A"), own_name=None, event_ids=["A"], affects="any", release_others=True) == [("A", "approve")]


def test_parsed_criteria_hold_the_policy_by_any_of_its_forms():
    rules = {"rules": [{"when": {}, "approve": "now"}]}
    for policy in ("documented", rules, Policy.from_mapping(rules)):
        criteria = ApprovalCriteria.parse(Selection(), policy, "OK", None, False)
        assert criteria.policy.may_approve() and (criteria.prepared, criteria.gates) == ("ok", {})
    assert ApprovalCriteria.parse(Selection(), None, "none", {"quorum": True}, True) == ApprovalCriteria(
        Selection(), None, True, None, "none", {"quorum": True}
    )
