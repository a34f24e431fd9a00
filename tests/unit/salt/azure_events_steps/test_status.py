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
