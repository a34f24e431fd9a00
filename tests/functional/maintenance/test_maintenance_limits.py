# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Limits of a maintenance run: hosts at a time, fault domains, and a deadline before NotBefore."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import simulator_process
from support.maintenance.fleet import FREEZE, LATE, MANUAL, WAIT, Fleet, failed, planned, rows
from support.simulator_process import Simulator

ALL = ("vm1", "vm2", "vm3")


def each_vm(azure: Simulator, **changes: object) -> None:
    """Announce one event for each VM, the earliest for vm3."""
    for number, name in enumerate(reversed(ALL)):
        azure.post("/events", {**LATE, "resources": [name], "notice": f"{120 + number}m", **changes})


@pytest.mark.all
def test_events_that_do_not_fit_wait_for_the_next_run(trio: Simulator, tmp_path: Path) -> None:
    each_vm(trio)
    fleet = Fleet(trio, tmp_path, ALL)
    ran = fleet.maintain(given={"maintenance_at_most": "67%"})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm3", "vm2"} and len(fleet.approvals()) == 2
    assert {name: (event["action"], event["because"]) for name, event in planned(ran).items()} == {
        "vm3": ("prepare", ""),
        "vm2": ("prepare", ""),
        "vm1": ("wait", "at_most"),
    }
    report = rows(ran)
    assert [report[name]["outcome"] for name in ALL] == ["waiting", "completed", "completed"]
    assert report["vm1"]["why_not"].startswith("at most 2 hosts at a time") and fleet.note("vm1") is None

    ran = fleet.maintain(given={"maintenance_at_most": 1})
    assert rows(ran)["vm1"]["outcome"] == "completed" and fleet.did("recover") == set(ALL)


@pytest.mark.all
def test_run_leaves_its_hosts_to_the_next_one_when_a_waiting_event_starts_soon(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**FREEZE, "resources": ["vm1"], "notice": "600s"})
    azure.post("/events", {**FREEZE, "resources": ["vm2"], "notice": "601s"})
    limits = {"maintenance_at_most": 1, "maintenance_yield": 501}
    ran = fleet.maintain(at={WAIT: lambda: None}, given=limits)
    assert ran.returncode == 0, ran.stdout
    report = rows(ran)
    assert (report["vm1"]["outcome"], report["vm2"]["outcome"]) == ("continues", "waiting")
    left = fleet.note("vm1")
    assert left and not left["held"] and fleet.did("recover") == set() and fleet.note("vm2") is None

    azure.advance(150)
    ran = fleet.maintain(given=limits)
    assert ran.returncode == 0, ran.stdout
    assert planned(ran)["vm2"]["because"] == "not_before"
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1", "vm2"} and len(fleet.approvals()) == 2


@pytest.mark.all
def test_one_fault_domain_at_a_time(tmp_path: Path) -> None:
    domains = {"vm1": {"fault_domain": 1}, "vm2": {"fault_domain": 0}, "vm3": {"fault_domain": 0}}
    scenario = {"groups": {"web": {"kind": "availability_set", "vms": domains}}, "knobs": {"rate_limit": 0}}
    with simulator_process.start(scenario, args=MANUAL) as azure:
        each_vm(azure)
        fleet = Fleet(azure, tmp_path, ALL)
        ran = fleet.maintain(given={"maintenance_one_fault_domain": True})
        assert ran.returncode == 0, ran.stdout
        assert fleet.did("prepare") == {"vm2", "vm3"} and planned(ran)["vm1"]["because"] == "fault_domain"


@pytest.mark.all
def test_preparation_is_ended_at_the_deadline(azure: Simulator, fleet: Fleet, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "resources": ["vm1"]})
    slow, released = tmp_path / "slow.yml", tmp_path / "released"
    slow.write_text(f"- ansible.builtin.command: timeout 300 sh -c 'until test -e {released}; do sleep 0.1; done'\n")

    def release() -> None:
        # the host recovers only when the command, which outlives its task, has ended
        released.touch()
        fleet.start_and_end_events()

    ran = fleet.maintain(
        at={WAIT: release}, given={"maintenance_prepare": str(slow), "maintenance_deadline": 15 * 60 - 60}
    )
    assert failed(ran) == {"vm1"} and fleet.approvals() == [], ran.stdout
    row = rows(ran)["vm1"]
    assert (row["outcome"], row["approval"], row["prepared"]) == ("failed", "not_prepared", None)
    assert row["recovered"] and fleet.reasons_of_starts() == ["NotBefore reached"]


@pytest.mark.all
def test_check_mode_prints_the_plan(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    azure.post("/events", {**LATE, "type": "Reboot", "resources": ["vm2"], "notice": "239m"})
    ran = fleet.maintain("true", "--check", given={"maintenance_at_most": 1})
    assert ran.returncode == 0, ran.stdout
    assert fleet.approvals() == [] and fleet.did("prepare") == set() and fleet.note("vm2") is None
    plan = planned(ran)
    assert (plan["vm2"]["wave"], plan["vm2"]["approve"]) == (1, True)
    assert (plan["vm1"]["wave"], plan["vm1"]["waits_for"]) == (2, ["vm2"])
    table = [line.strip(' ",') for line in ran.stdout.splitlines() if "  prepare  " in line or "  wait  " in line]
    assert [line.split()[0] for line in table] == ["Reboot", "Freeze"] and table[1].endswith("out of service: vm2")
    assert {row["outcome"] for row in rows(ran).values()} == {"checked", "waiting"}
