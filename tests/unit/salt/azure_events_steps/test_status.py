# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import os
from pathlib import Path

from support.salt.scripted import ScriptedImds
from support.salt.steps_minion import StepsMinion


def test_status_of_a_minion_without_imds(tmp_path: Path) -> None:
    status = StepsMinion(tmp_path, "http://127.0.0.1:9").call("status")
    assert (status["available"], status["events"], status["records"], status["working"]) == (False, [], [], None)
    assert "no connection" in status["reason"] and not os.listdir(tmp_path)


def test_status_has_events_that_may_affect_this_vm(tmp_path: Path, scripted: ScriptedImds) -> None:
    scripted.events = [scripted.event("A", "vm1"), scripted.event("B"), scripted.event("C", "vm2")]
    status = StepsMinion(tmp_path, scripted.endpoint).call("status")
    assert [(event["event_id"], event["readable"]) for event in status["events"]] == [("A", True), ("B", False)]


def test_state_of_a_record_is_that_for_the_type_that_imds_lists(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [scripted.event("A", "vm1", kind="Freeze")]
    minion.prepare("A")
    states = []
    for kind in ("Freeze", "Redeploy"):
        scripted.events = [scripted.event("A", "vm1", kind=kind)]
        (record,) = minion.call("status")["records"]
        states.append((record["event_type"], record["state"]))
    assert states == [("Freeze", "prepared"), ("Redeploy", "prepare_failed")]
    assert minion.prepare("A") == "prepared"
    assert minion.call("status")["records"][0]["state"] == "prepared"
