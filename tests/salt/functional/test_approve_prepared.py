# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""approve_prepared: the approval for the engine, which rests on the minion's own record."""

from __future__ import annotations

from pathlib import Path

import pytest
from salt.exceptions import SaltInvocationError

from support.salt.azure import Azure
from support.salt.loaded import CountingMinion, failing
from support.salt.scripted import ScriptedImds


def test_prepared_event_is_approved_once(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    counting.prepare(event_id)
    assert counting.approve(event_id.lower(), "VM1", "vm2", "vm9") == "approved"
    assert counting.approve(event_id, "vm1", "vm2") == "already_approved"
    assert azure.approvals(event_id) == ["vm1"]


def test_nothing_is_approved_without_a_preparation_for_that_event(counting: CountingMinion, azure: Azure) -> None:
    event_id, other = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    assert counting.approve(event_id, "vm1") == "not_prepared"
    counting.prepare(other)
    assert counting.approve(event_id, "vm1") == "not_prepared"
    counting.prepare()
    assert counting.approve(event_id, "vm1") == "not_prepared"
    assert azure.approvals(event_id) == []


def test_vm_that_is_not_ready_withholds_the_approval(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    counting.prepare(event_id)
    answer = counting.call("approve_prepared", event_id, ["vm1"])
    assert answer["outcome"] == "others_affected" and "vm2" in answer["reason"]
    assert azure.approvals(event_id) == []


def test_what_its_own_imds_says_decides(counting: CountingMinion, azure: Azure) -> None:
    assert counting.approve("00000000-forged", "vm1") == "not_listed"
    assert counting.approve(azure.announce("vm2"), "vm1", "vm2") == "not_affected"
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    with failing(azure, "empty"):
        assert counting.approve(event_id, "vm1") == "unavailable"
    azure.start(event_id)
    assert counting.approve(event_id, "vm1") == "started"


def test_selection_is_asked_again_but_not_the_notice(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    counting.configure(types=["Freeze"])
    assert counting.approve(event_id, "vm1") == "not_selected"
    counting.configure(types=["Reboot"], minimum_notice="2d")
    assert counting.approve(event_id, "vm1") == "approved"


def test_refusal_of_azure_is_a_failure_with_its_reason(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = CountingMinion(tmp_path, scripted.endpoint)
    scripted.events = [scripted.event("A", "vm1")]
    minion.prepare("A")
    scripted.refuses = 400
    answer = minion.call("approve_prepared", "A", ["vm1"])
    assert answer["outcome"] == "failed" and "400" in answer["reason"]


def test_wrong_arguments_are_refused(counting: CountingMinion) -> None:
    for arguments in ((None, ["vm1"]), ("A", None), ("A", [7]), ("A", {"vm1": True}), ("", ["vm1"])):
        with pytest.raises(SaltInvocationError):
            counting.call("approve_prepared", *arguments)
