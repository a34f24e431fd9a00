# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The events that a maintenance run selects, and new events while it waits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.maintenance.fleet import FREEZE, LATE, LIFE, NOTICE, WAIT, Fleet
from support.simulator_process import Simulator
from support.wait import wait_until

pytestmark = pytest.mark.all


def test_event_after_maintenance_within_is_not_handled(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "notice": "3d"})
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain(given={"maintenance_within": 1800})
    assert ran.returncode == 0, ran.stdout
    assert (
        fleet.did("prepare") == fleet.did("recover") == set() and fleet.approvals() == [] and fleet.note("vm1") is None
    )


def test_other_types_are_not_handled(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    azure.post("/events", {**LATE, "type": "Reboot", "resources": ["vm2"]})
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain(given={"maintenance_types": ["Reboot", "Redeploy"]})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm2"} and [line["vm"] for line in fleet.approvals()] == [
        "vm2"
    ]


def test_advice_is_not_handled_beside_an_event_and_is_when_its_type_is_named(azure: Simulator, tmp_path: Path) -> None:
    advice = {"name": "risk", "type": "SpotRebalanceRecommendation", "resources": ["vm1"], "notice": "2d"}
    azure.post("/events", advice)
    azure.post("/events", {**LATE, "resources": ["vm2"]})
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm2"}
    assert [line["vm"] for line in fleet.approvals()] == ["vm2"]
    named = fleet.maintain(
        given={"maintenance_types": ["SpotRebalanceRecommendation"], "maintenance_within": 3 * 86400},
        at={WAIT: lambda: azure.post("/events/risk/cancel", {})},
    )
    assert named.returncode == 0, named.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1", "vm2"}
    assert len(fleet.approvals()) == 1 and "it only advises; an approval would have no effect" in named.stdout


def test_host_whose_vm_leaves_the_event_recovers_while_the_event_lasts(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "name": "it"})
    fleet = Fleet(azure, tmp_path)
    recovered: set[str] = set()

    def vm1_leaves() -> None:
        azure.post("/events/it/change", {"resources": ["vm2"]})
        ends = time.monotonic() + 15
        while time.monotonic() < ends and not fleet.did("recover"):
            time.sleep(0.1)
        recovered.update(fleet.did("recover"))
        fleet.start_and_end_events()

    assert fleet.maintain(at={WAIT: vm1_leaves}).returncode == 0 and fleet.did("recover") == {"vm1", "vm2"}
    assert recovered == {"vm1"}


def test_new_event_during_the_wait_keeps_the_host_prepared(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path)

    def second_comes() -> None:
        azure.advance(NOTICE)
        azure.post("/events", {"type": "Reboot", "resources": ["vm1"], "notice": "50m", "started_for": LIFE})
        fleet.wait_for_polls()
        azure.advance(LIFE)
        wait_until(lambda: fleet.did("recover") == {"vm2"})
        fleet.wait_for_polls()
        note = fleet.note("vm1") or {"events": []}
        assert fleet.did("recover") == {"vm2"} and {event["event_type"] for event in note["events"]} == {
            "Freeze",
            "Reboot",
        }
        azure.advance(LIFE)

    ran = fleet.maintain(at={WAIT: second_comes})
    assert ran.returncode == 0, ran.stdout
    assert fleet.course_of("recover") == ["vm2", "vm1"] and fleet.course_of("prepare").count("vm1") == 1
    assert len(fleet.approvals()) == 1 and "it came during the wait" in ran.stdout


def test_event_of_a_note_is_handled_although_its_type_is_not_selected(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    fleet = Fleet(azure, tmp_path)
    fleet.maintain(at={WAIT: lambda: None}, given={"maintenance_patience": 1})
    ran = fleet.maintain(given={"maintenance_types": ["Reboot"]})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1"} and fleet.note("vm1") is None


def test_event_listed_again_under_another_id_is_prepared_and_recovered(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "resources": ["vm1"], "name": "first"})
    fleet = Fleet(azure, tmp_path)
    fleet.maintain(at={WAIT: lambda: None}, given={"maintenance_patience": 1})
    azure.post("/events/first/cancel")
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert fleet.course_of("prepare") == ["vm1", "vm1"] and fleet.course_of("recover") == ["vm1"]
    assert fleet.note("vm1") is None and fleet.reasons_of_starts()[-1] == "approved"
