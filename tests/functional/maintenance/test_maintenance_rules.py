# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Each rule in the table of the role's README: the run follows it, and its report shows the outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.maintenance.fleet import FREEZE, LATE, LIFE, NOTICE, WAIT, Fleet, failed
from support.maintenance.reports import reporting, rows, with_statistics
from support.simulator_process import Simulator

pytestmark = pytest.mark.all

# seconds
SOON = {"maintenance_removed_after": 3}


def test_terminated_vm_does_not_fail_and_is_not_awaited(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", {**LATE, "type": "Terminate", "resources": ["vm1"]})
    fleet = with_statistics(Fleet.over_flaky_ssh(azure, tmp_path, down))
    ran = fleet.maintain(at={WAIT: (down / "vm1").touch}, given=SOON)
    assert ran.returncode == 0 and failed(ran) == set(), ran.stdout
    row = rows(ran)["vm1"]
    assert (row["outcome"], row["approval"], row["recovered"]) == ("removed", "approved", None)
    assert row["prepared"] and "Azure has removed the VM" in row["why_not"]
    # on the disk of the VM
    assert fleet.note("vm1")


def test_preempted_vm_that_was_not_approved_is_removed_after_its_start(
    trio: Simulator, tmp_path: Path, down: Path
) -> None:
    # no answer of the host says that the event has started; its NotBefore passes by the clock of the controller
    trio.post("/events", {**LATE, "type": "Preempt", "resources": ["vm1", "vm3"], "notice": "1m"})
    fleet = with_statistics(Fleet.over_flaky_ssh(trio, tmp_path, down, names=("vm1", "vm2")))

    def starts_and_is_evicted() -> None:
        trio.advance(NOTICE)
        fleet.wait_for_polls()
        (down / "vm1").touch()

    ran = fleet.maintain(at={WAIT: starts_and_is_evicted}, given=SOON)
    assert ran.returncode == 0, ran.stdout
    row = rows(ran)["vm1"]
    # vm3 is not in the inventory
    assert (row["outcome"], row["approval"], row["approved"]) == ("removed", "unknown_vm", None)


def test_host_that_is_lost_by_another_event_is_awaited(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", {**LATE, "type": "Redeploy", "resources": ["vm1"]})
    fleet = with_statistics(Fleet.over_flaky_ssh(azure, tmp_path, down, time_limits={"vm1": 8}))
    ran = fleet.maintain(at={WAIT: (down / "vm1").touch}, given=SOON)
    assert failed(ran) == {"vm1"} and rows(ran)["vm1"]["outcome"] == "failed"


def test_event_cancelled_before_the_approval(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "name": "it"})
    fleet = reporting(azure, tmp_path)
    ran = fleet.maintain(meanwhile=lambda: azure.post("/events/it/cancel"))
    assert ran.returncode == 0 and fleet.did("recover") == {"vm1", "vm2"}, ran.stdout
    for row in rows(ran).values():
        assert (row["outcome"], row["approved"]) == ("unknown", None) and row["recovered"]


def test_event_cancelled_after_the_approval(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "name": "it"})
    fleet = reporting(azure, tmp_path)
    ran = fleet.maintain(at={WAIT: lambda: azure.post("/events/it/cancel")})
    assert ran.returncode == 0 and fleet.did("recover") == {"vm1", "vm2"}, ran.stdout
    for row in rows(ran).values():
        # IMDS does not state whether an approved event was cancelled or took place between two requests
        assert (row["outcome"], row["approval"]) == ("unknown", "approved") and row["recovered"]


@pytest.mark.parametrize(("notice", "passes"), [("30m", 31 * 60), ("1m", 2 * 60)])
def test_moved_not_before_is_reported(azure: Simulator, tmp_path: Path, notice: str, passes: int) -> None:
    azure.post("/events", {**FREEZE, "name": "it"})
    fleet = reporting(azure, tmp_path, names=("vm1",))

    def is_moved() -> None:
        azure.post("/events/it/change", {"notice": notice})
        fleet.wait_for_polls()
        if passes > NOTICE:
            azure.advance(NOTICE)
            fleet.wait_for_polls()
            assert fleet.reasons_of_starts() == [] and fleet.did("recover") == set()
        azure.advance(passes)
        fleet.wait_for_polls()
        azure.advance(LIFE)

    ran = fleet.maintain(at={WAIT: is_moved})
    assert ran.returncode == 0 and fleet.did("recover") == {"vm1"}, ran.stdout
    row = rows(ran)["vm1"]
    assert (row["outcome"], row["approval"]) == ("completed", "unknown_vm")
    assert row["moved_to"] and (row["moved_to"] > row["not_before"]) == (passes > NOTICE)


def test_another_client_approves_first(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "name": "it"})
    fleet = reporting(azure, tmp_path)

    def is_approved() -> None:
        azure.post("/events/it/approve", {"as": "control-plane"})
        azure.advance(60)

    ran = fleet.maintain(meanwhile=is_approved)
    assert ran.returncode == 0 and fleet.did("recover") == {"vm1", "vm2"}, ran.stdout
    for row in rows(ran).values():
        assert (row["outcome"], row["approval"], row["approved"]) == ("completed", "started", None)


def test_failed_preparation(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = reporting(azure, tmp_path)
    ran = fleet.maintain("test {{ inventory_hostname }} != vm2")
    assert failed(ran) == {"vm2"}
    report = rows(ran)
    assert [report[name]["outcome"] for name in ("vm1", "vm2")] == ["completed", "failed"]
    assert {row["approval"] for row in report.values()} == {"not_prepared"}


def test_unreachable_host(trio: Simulator, tmp_path: Path, down: Path) -> None:
    trio.post("/events", {**FREEZE, "resources": ["vm1", "vm3"]})
    fleet = with_statistics(Fleet.over_flaky_ssh(trio, tmp_path, down))
    (down / "vm3").touch()
    ran = fleet.maintain()
    assert failed(ran) == {"vm3"} and fleet.approvals() == [], ran.stdout
    report = rows(ran)
    assert (report["vm1"]["outcome"], report["vm1"]["approval"]) == ("completed", "unknown_vm")
    assert (report["vm3"]["outcome"], report["vm3"]["event_id"]) == ("failed", "")
