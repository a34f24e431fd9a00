# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The report, and the rules in the table of the role's README: the run follows them, and reports the outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.maintenance.fleet import FREEZE, LATE, NOTICE, WAIT, Fleet, failed, rows
from support.simulator_process import Simulator

pytestmark = pytest.mark.all


def test_terminated_vm_does_not_fail_and_is_not_awaited(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", {**LATE, "type": "Terminate", "resources": ["vm1"]})
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)
    ran = fleet.maintain(at={WAIT: (down / "vm1").touch}, given={"maintenance_removed_after": 3})
    assert ran.returncode == 0 and failed(ran) == set(), ran.stdout
    row = rows(ran)["vm1"]
    assert (row["outcome"], row["approval"], row["recovered"]) == ("removed", "approved", None)
    assert row["prepared"] and "Azure has removed the VM" in row["why_not"]
    # on the disk of the VM
    assert fleet.note("vm1")


@pytest.mark.parametrize("is_approved", [False, True])
def test_event_is_cancelled_before_or_after_the_approval(azure: Simulator, fleet: Fleet, is_approved: bool) -> None:
    azure.post("/events", {**LATE, "name": "it"})

    def cancel() -> None:
        azure.post("/events/it/cancel")

    ran = fleet.maintain(at={WAIT: cancel}) if is_approved else fleet.maintain(while_preparing=cancel)
    assert ran.returncode == 0 and fleet.did("prepare") == fleet.did("recover") == {"vm1", "vm2"}, ran.stdout
    assert len(fleet.approvals()) == is_approved
    for row in rows(ran).values():
        # IMDS does not state whether an approved event was cancelled or took place between two requests
        assert (row["outcome"], row["approved"] is not None) == ("unknown", is_approved) and row["recovered"]


def test_moved_not_before_is_followed_and_reported(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "name": "it"})
    fleet = Fleet(azure, tmp_path, names=("vm1",))

    def is_moved() -> None:
        azure.post("/events/it/change", {"notice": "30m"})
        fleet.wait_for_polls()
        azure.advance(NOTICE)
        fleet.wait_for_polls()
        assert fleet.reasons_of_starts() == [] and fleet.did("recover") == set()
        fleet.start_and_end_events()

    ran = fleet.maintain(at={WAIT: is_moved})
    assert ran.returncode == 0 and fleet.did("recover") == {"vm1"}, ran.stdout
    row = rows(ran)["vm1"]
    assert (row["outcome"], row["approval"]) == ("completed", "unknown_vm") and row["moved_to"] > row["not_before"]


def test_another_client_approves_first(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**LATE, "name": "it"})

    def is_approved() -> None:
        azure.post("/events/it/approve", {"as": "control-plane"})
        azure.advance(60)

    ran = fleet.maintain(while_preparing=is_approved)
    assert ran.returncode == 0 and fleet.did("recover") == {"vm1", "vm2"}, ran.stdout
    for row in rows(ran).values():
        assert (row["outcome"], row["approval"], row["approved"]) == ("completed", "started", None)


def test_unreachable_host(trio: Simulator, tmp_path: Path, down: Path) -> None:
    trio.post("/events", {**FREEZE, "resources": ["vm1", "vm3"]})
    fleet = Fleet.over_flaky_ssh(trio, tmp_path, down)
    (down / "vm3").touch()
    ran = fleet.maintain()
    assert failed(ran) == {"vm3"} and fleet.approvals() == [], ran.stdout
    report = rows(ran)
    assert (report["vm1"]["outcome"], report["vm1"]["approval"]) == ("completed", "unknown_vm")
    assert (report["vm3"]["outcome"], report["vm3"]["event_id"]) == ("failed", "")


def test_report_is_shown_although_all_hosts_fail(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    ran = Fleet(azure, tmp_path).maintain(recover="false")
    assert failed(ran) == {"vm1", "vm2"}
    for row in rows(ran).values():
        assert (
            row["approved"]
            and row["over"]
            and row["recovered"] is None
            and row["why_not"].startswith("the recovery failed: ")
        )


def test_any_errors_fatal_of_the_user_stops_no_other_host(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", FREEZE)
    fleet.hosts.environment["ANSIBLE_ANY_ERRORS_FATAL"] = "1"
    ran = fleet.maintain("test {{ inventory_hostname }} != vm2", recover="test {{ inventory_hostname }} != vm1")
    assert failed(ran) == {"vm1", "vm2"}
    assert fleet.did("prepare") == {"vm1"} and fleet.did("recover") == {"vm2"}
