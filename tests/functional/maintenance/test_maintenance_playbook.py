# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The playbook maintenance: which events it prepares for and approves, and that all hosts recover."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import simulator_process
from support.maintenance.fleet import FREEZE, LATE, LIFE, MANUAL, NOTICE, PAIR, WAIT, Fleet, failed, rows
from support.simulator_process import Simulator
from support.wait import wait_until


@pytest.mark.all
def test_without_an_event_no_host_is_changed(fleet: Fleet) -> None:
    ran = fleet.maintain("true")
    assert ran.returncode == 0 and failed(ran) == set(), ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == set() and fleet.approvals() == []


def test_failed_preparation_is_not_approved_and_all_hosts_recover(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", FREEZE)
    ran = fleet.maintain("test {{ inventory_hostname }} != vm2")
    assert ran.returncode != 0 and failed(ran) == {"vm2"}, ran.stdout
    assert fleet.approvals() == []
    assert fleet.did("prepare") == {"vm1"} and fleet.did("recover") == {"vm1", "vm2"}
    assert fleet.reasons_of_starts() == ["NotBefore reached"]
    report = rows(ran)
    assert report["vm1"]["prepared"] and report["vm2"]["prepared"] is None
    assert [report[name]["outcome"] for name in ("vm1", "vm2")] == ["completed", "failed"]
    assert {(row["approval"], row["approved"]) for row in report.values()} == {("not_prepared", None)}
    assert report["vm1"]["why_not"].startswith("not approved: vm2: the preparation failed: ")
    assert "the preparation failed" in report["vm2"]["why_not"] and report["vm2"]["recovered"]
    assert re.search(r"Freeze \S+ of vm1, vm2 is not approved: vm2: the preparation failed", ran.stdout)


@pytest.mark.all
def test_vm_outside_of_the_play_prevents_the_approval(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path, names=("vm1",))
    assert fleet.maintain("true").returncode == 0
    assert fleet.approvals() == [] and fleet.did("prepare") == fleet.did("recover") == {"vm1"}


@pytest.mark.all
def test_each_event_is_approved_once_by_its_first_vm(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**LATE, "resources": ["vm2", "vm1"]})
    azure.post("/events", {**LATE, "type": "Reboot", "resources": ["vm2"]})
    ran = fleet.maintain("true")
    assert ran.returncode == 0, ran.stdout
    assert sorted(line["vm"] for line in fleet.approvals()) == ["vm1", "vm2"]
    assert fleet.did("recover") == {"vm1", "vm2"}


@pytest.mark.all
def test_started_event_is_not_prepared_for_but_recovered_from(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**FREEZE, "starts": "hardware_failure"})
    ran = fleet.maintain("true")
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == set() and fleet.did("recover") == {"vm1", "vm2"} and fleet.approvals() == []


@pytest.mark.all
def test_host_without_imds_fails_alone(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path, elsewhere={"maintenance_endpoint": "http://127.0.0.1:9"})
    ran = fleet.maintain("true")
    assert failed(ran) == {"elsewhere"} and "no connection" in ran.stdout
    assert "its scheduled events could not be read" in rows(ran)["elsewhere"]["why_not"]
    assert len(fleet.approvals()) == 1 and fleet.did("recover") == {"vm1", "vm2"}


def test_imds_errors_during_the_wait_do_not_end_it(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", LATE)

    def starts_unseen() -> None:
        azure.post("/faults", {"kind": "empty", "route": "scheduledevents", "requests": "1-2"})
        fleet.start_and_end_events()

    ran = fleet.maintain("true", at={WAIT: starts_unseen})
    assert ran.returncode == 0, ran.stdout
    assert [request["vm"] for request in azure.get("/requests")["requests"] if request["fault"]].count("vm1") == 2
    assert len(fleet.approvals()) == 1 and fleet.did("recover") == {"vm1", "vm2"}


@pytest.mark.all
def test_hosts_that_reboot_recover(tmp_path: Path) -> None:
    down = tmp_path / "down"
    down.mkdir()
    command = {
        phase: ["sh", "-c", f"{program} {down}/$VM_NAME"] for phase, program in (("start", "touch"), ("end", "rm -f"))
    }
    scenario = {
        "groups": PAIR,
        "events": [{**LATE, "type": "Reboot", "impact_for": "2m"}],
        "impact": {"Reboot": command},
        "knobs": {"rate_limit": 0},
    }
    with simulator_process.start(scenario, args=MANUAL) as azure:
        fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)

        def reboot() -> None:
            azure.advance(2)
            wait_until(lambda: {path.name for path in down.glob("*.missed")} == {"vm1.missed", "vm2.missed"})
            azure.advance(120)
            fleet.start_and_end_events()

        ran = fleet.maintain("true", at={WAIT: reboot})
        assert fleet.did("recover") == {"vm1", "vm2"}, ran.stdout
        assert ran.returncode == 0, ran.stdout
        assert len(fleet.approvals()) == 1


@pytest.mark.all
def test_refused_approval_fails_the_host_but_not_its_recovery(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**FREEZE, "resources": ["vm1"]})
    azure.post("/faults", {"kind": "status", "status": 403, "method": "POST"})
    ran = fleet.maintain("true")
    assert failed(ran) == {"vm1"} and "403" in ran.stdout
    assert fleet.did("recover") == {"vm1"}


@pytest.mark.all
def test_role_that_does_not_exist_fails_the_recovery(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "resources": ["vm1"]})
    fleet = Fleet(azure, tmp_path, names=("vm1",))
    undrain = tmp_path / "undrain.yml"
    undrain.write_text("- name: Undrain\n  ansible.builtin.include_role: {name: no_such_role}\n")
    ran = fleet.maintain(given={"maintenance_recover": str(undrain)})
    left = fleet.note("vm1")
    assert failed(ran) == {"vm1"} and left, ran.stdout
    # Ansible sets neither the task nor the result of this failure in a rescue
    assert "see the output of the run" in left["left_because"]


@pytest.mark.all
def test_vm_added_to_the_event_during_the_preparation_prevents_the_approval(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "name": "it", "resources": ["vm1"]})
    fleet = Fleet(azure, tmp_path, names=("vm1",))
    ran = fleet.maintain("true", while_preparing=lambda: azure.post("/events/it/change", {"resources": ["vm1", "vm2"]}))
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1"} and fleet.approvals() == []
    assert fleet.reasons_of_starts() == ["NotBefore reached"]


@pytest.mark.all
def test_advice_is_not_handled_beside_an_event_and_is_when_its_type_is_named(azure: Simulator, fleet: Fleet) -> None:
    advice = {"name": "risk", "type": "SpotRebalanceRecommendation", "resources": ["vm1"], "notice": "2d"}
    azure.post("/events", advice)
    azure.post("/events", {**LATE, "resources": ["vm2"]})
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
    assert [line["vm"] for line in fleet.approvals()] == ["vm2", "vm1"]


@pytest.mark.all
def test_new_event_during_the_wait_keeps_the_host_prepared(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", LATE)

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


@pytest.mark.all
def test_event_listed_again_under_another_id_is_prepared_and_recovered(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**LATE, "resources": ["vm1"], "name": "first"})
    fleet.maintain(at={WAIT: lambda: None}, given={"maintenance_patience": 1})
    azure.post("/events/first/cancel")
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert fleet.course_of("prepare") == ["vm1", "vm1"] and fleet.course_of("recover") == ["vm1"]
    assert fleet.note("vm1") is None and fleet.reasons_of_starts()[-1] == "approved"
