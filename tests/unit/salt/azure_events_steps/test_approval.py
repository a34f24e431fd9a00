# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The approval for the engine, by the minion's own record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from azure_events_steps import imds_observation
from support.salt.azure import Azure, failing
from support.salt.scripted import ScriptedImds
from support.salt.steps_minion import StepsMinion

BOTH, ALONE = ScriptedImds.event("A", "vm1", "vm2"), ScriptedImds.event("A", "vm1")


def test_prepared_event_is_approved_once(minion: StepsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    minion.prepare(event_id)
    assert minion.approve(event_id.lower(), "VM1", "vm2", "vm9") == "approved"
    assert minion.approve(event_id, "vm1", "vm2") == "already_approved"
    assert azure.approvals(event_id) == ["vm1"]


def test_nothing_is_approved_without_a_preparation_for_that_event(minion: StepsMinion, azure: Azure) -> None:
    event_id, other = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    assert minion.approve(event_id, "vm1") == "not_prepared"
    minion.prepare(other)
    assert minion.approve(event_id, "vm1") == "not_prepared"
    minion.prepare()
    assert minion.approve(event_id, "vm1") == "not_prepared"
    assert azure.approvals(event_id) == []


def test_vm_that_is_not_ready_withholds_the_approval(minion: StepsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    minion.prepare(event_id)
    answer = minion.call("approve_prepared", event_id, ["vm1"])
    assert answer["outcome"] == "others_affected" and "vm2" in answer["reason"]
    assert azure.approvals(event_id) == []


def test_approve_prepared_follows_the_minions_own_imds(minion: StepsMinion, azure: Azure) -> None:
    assert minion.approve("00000000-forged", "vm1") == "not_listed"
    assert minion.approve(azure.announce("vm2"), "vm1", "vm2") == "not_affected"
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    with failing(azure, "empty"):
        assert minion.approve(event_id, "vm1") == "unavailable"
    azure.start(event_id)
    assert minion.approve(event_id, "vm1") == "started"


def test_approve_prepared_applies_the_selection_without_minimum_notice(minion: StepsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    minion.configure(types=["Freeze"])
    assert minion.approve(event_id, "vm1") == "not_selected"
    minion.configure(types=["Reboot"], minimum_notice="2d")
    assert minion.approve(event_id, "vm1") == "approved"


@pytest.fixture
def prepared(tmp_path: Path, scripted: ScriptedImds) -> StepsMinion:
    """A minion that is prepared for event A of vm1 and vm2."""
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [BOTH]
    minion.prepare("A")
    return minion


def test_event_whose_type_is_another_than_that_of_the_preparations_is_not_approved(
    prepared: StepsMinion, scripted: ScriptedImds
) -> None:
    worse = scripted.event("B", "vm1", kind="Redeploy")
    scripted.events = [BOTH, worse]
    assert prepared.prepare("B") == "prepared"
    scripted.events = [{**BOTH, "EventType": "Redeploy"}, worse]
    ready: dict[str, Any] = {"resources": ["vm1", "vm2"], "event_type": "Freeze"}
    answer = prepared.call("approve_prepared", "A", **ready)
    assert answer["outcome"] == "not_prepared" and "Redeploy" in answer["reason"] and scripted.approved == []
    scripted.events = [BOTH]
    assert prepared.call("approve_prepared", "A", **ready)["outcome"] == "approved"


def test_refusal_of_azure_is_a_failure_with_its_reason(prepared: StepsMinion, scripted: ScriptedImds) -> None:
    scripted.refuses = 400
    answer = prepared.call("approve_prepared", "A", ["vm1", "vm2"])
    assert answer["outcome"] == "failed" and "400" in answer["reason"]


def test_vm_of_the_record_that_has_left_the_event_does_not_withhold_the_approval(
    prepared: StepsMinion, scripted: ScriptedImds
) -> None:
    scripted.events = [ALONE]
    asked = scripted.asked
    # they span GONE_AFTER
    assert prepared.approve("A", "vm1") == "approved" and scripted.asked == asked + 3


@pytest.mark.parametrize("vms", [["vm1"], ["vm1", "vm2"]])
@pytest.mark.parametrize("fields", [{}, {"EventType": "Melt"}], ids=["known", "unknown"])
def test_second_document_is_read_before_an_approval_and_none_after_it(
    tmp_path: Path, scripted: ScriptedImds, vms: list[str], fields: dict[str, str]
) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [{**scripted.event("A", *vms), **fields}]
    minion.prepare("A")
    for outcome, documents in (("approved", 2), ("already_approved", 1)):
        asked = scripted.asked
        assert minion.call("approve_prepared", "A", vms, forced=True)["outcome"] == outcome
        assert scripted.asked == asked + documents and scripted.approved == ["A"]


def test_one_document_that_names_this_vm_alone_releases_no_other(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [ALONE]
    minion.prepare("A")
    scripted.next = [[ALONE], [BOTH]]
    assert minion.approve("A", "vm1") == "others_affected" and scripted.approved == []


def test_recovery_while_imds_is_read_withholds_the_approval(prepared: StepsMinion, scripted: ScriptedImds) -> None:
    scripted.before_answer = lambda: prepared.record.unlink(missing_ok=True)
    assert prepared.approve("A", "vm1", "vm2") == "not_prepared" and scripted.approved == []


def test_no_time_for_a_second_document_withholds_the_approval(
    prepared: StepsMinion, scripted: ScriptedImds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imds_observation, "POLL_INTERVAL", imds_observation.IMDS_TIMEOUT)
    assert prepared.approve("A", "vm1", "vm2") == "unavailable" and scripted.approved == []


@pytest.mark.parametrize(
    ("documents", "ready", "outcome"),
    [
        ([[ALONE], [BOTH]], ["vm1"], "others_affected"),
        ([[BOTH], [ScriptedImds.event("A", "vm1", "vm2", "vm3")]], ["vm1", "vm2"], "others_affected"),
        ([[BOTH], [ScriptedImds.event("A", "vm2")]], ["vm1", "vm2"], "not_affected"),
        ([[BOTH], [ScriptedImds.event("A", "vm1", "vm2", status="Started")]], ["vm1", "vm2"], "started"),
        ([[BOTH], []], ["vm1", "vm2"], "not_listed"),
        ([[BOTH], [{}]], ["vm1", "vm2"], "unavailable"),
        ([[{**BOTH, "Resources": ["vm1", "vm2", 7]}]], ["vm1", "vm2", "7"], "others_affected"),
    ],
    ids=["lacks a VM", "another VM", "not this VM", "started", "no event", "unreadable event", "unreadable VM"],
)
def test_each_document_may_withhold_the_approval(
    prepared: StepsMinion, scripted: ScriptedImds, documents: list[Any], ready: list[str], outcome: str
) -> None:
    scripted.next = [*documents]
    assert prepared.approve("A", *ready) == outcome and scripted.approved == []


@pytest.mark.parametrize(
    ("field", "code"),
    [("EventType", "unknown_type"), ("EventSource", "unknown_source"), ("ResourceType", "unknown_resource_type")],
)
def test_only_an_order_of_a_person_releases_an_unknown_value(
    tmp_path: Path, scripted: ScriptedImds, field: str, code: str
) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [{**scripted.event("A", "vm1"), field: "Melt"}]
    minion.prepare("A")
    assert minion.approve("A", "vm1") == code and scripted.approved == []
    assert minion.call("approve_prepared", "A", ["vm1"], forced=True)["outcome"] == "approved"
