# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The host that approves is lost before or after it has sent the approval, or has restarted: the next one sends it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from support.maintenance.fleet import LATE, WAIT, Fleet, rows, variables
from support.simulator_process import Simulator
from support.wait import wait_until

BOTH = {"vm1", "vm2"}
APPROVE = "Approve the events of which this host is the first VM"
PAUSE = "Pause before the hosts are read again"
# the host does not get the request to IMDS
UNSENT = {"kind": "server-error", "route": "scheduledevents", "method": "POST", "vm": "vm1"}
# Azure takes the first request, whose answer is lost
UNANSWERED = ({**UNSENT, "kind": "lost-answer", "requests": "1"}, {**UNSENT, "requests": "2-"})


def approvals(fleet: Fleet) -> list[tuple[str, int]]:
    return [(line["vm"], line["status"]) for line in fleet.approvals()]


def test_host_is_lost_before_it_sends_then_the_next_one_approves(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", LATE)
    azure.post("/faults", UNSENT)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)
    ran = fleet.maintain(at={APPROVE: (down / "vm1").touch, PAUSE: (down / "vm1").unlink})
    assert ran.returncode == 0, ran.stdout
    assert approvals(fleet) == [("vm2", 200)] and fleet.did("recover") == BOTH
    for row in rows(ran).values():
        assert row["approved"] and (row["approval"], row["outcome"], row["why_not"]) == ("approved", "completed", "")


@pytest.mark.all
def test_host_is_lost_after_it_sent_then_no_other_one_approves(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", LATE)
    for fault in UNANSWERED:
        azure.post("/faults", fault)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)

    def is_lost() -> None:
        wait_until(fleet.approvals)
        (down / "vm1").touch()
        azure.advance(30)

    def comes_back() -> None:
        (down / "vm1").unlink()
        fleet.start_and_end_events()

    ran = fleet.maintain(at={APPROVE: is_lost, WAIT: comes_back})
    assert ran.returncode == 0, ran.stdout
    assert approvals(fleet) == [("vm1", 200)] and fleet.did("recover") == BOTH
    for row in rows(ran).values():
        assert (row["approval"], row["approved"], row["outcome"]) == ("started", None, "completed")


@pytest.mark.all
def test_host_that_stays_lost_prevents_the_approval(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", {**LATE, "notice": "15m"})
    azure.post("/faults", UNSENT)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)

    def comes_back() -> None:
        (down / "vm1").unlink()
        fleet.start_and_end_events()

    ran = fleet.maintain(at={APPROVE: (down / "vm1").touch, WAIT: comes_back}, given={"maintenance_removed_after": 1})
    assert approvals(fleet) == [] and fleet.did("recover") == BOTH, ran.stdout
    report = rows(ran)
    assert {row["approval"] for row in report.values()} == {"not_known"}
    assert "the host could not be read after its preparation" in report["vm1"]["why_not"]
    assert [report[name]["outcome"] for name in ("vm1", "vm2")] == ["failed", "completed"]


def fleet_with_a_restart(azure: Simulator, tmp_path: Path) -> tuple[Fleet, str]:
    """Return vm1 and vm2, and a command of the preparation after which vm1 is in another boot."""
    boot, python = tmp_path / "boot", tmp_path / "python"
    (tmp_path / "sitecustomize.py").write_text(
        "import builtins, os\n"
        "_open = builtins.open\n"
        "def _opened(file, *rest, **named):\n"
        f"    is_other = file == '/proc/sys/kernel/random/boot_id' and os.path.exists({str(boot)!r})\n"
        f"    return _open({str(boot)!r} if is_other else file, *rest, **named)\n"
        "builtins.open = _opened\n"
    )
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    restarts = {**variables(azure, tmp_path, "vm1"), "ansible_python_interpreter": str(python)}
    # the first preparation ends before the restart
    prepare = f"test {{{{ inventory_hostname }}}} = vm2 || echo another > {boot}"
    return Fleet(azure, tmp_path, ("vm2",), vm1=restarts), prepare


@pytest.mark.all
def test_host_that_has_restarted_prepares_again_before_the_approval(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    fleet, prepare = fleet_with_a_restart(azure, tmp_path)
    ran = fleet.maintain(prepare)
    assert ran.returncode == 0, ran.stdout
    assert "vm1: it has restarted since it has prepared" in ran.stdout
    assert sorted(fleet.course_of("prepare")) == ["vm1", "vm1", "vm2"] and fleet.did("recover") == BOTH
    assert approvals(fleet) == [("vm1", 200)] and all(row["approved"] for row in rows(ran).values())


@pytest.mark.all
@pytest.mark.parametrize("then, approved", [("Redeploy", []), ("Freeze", [("vm1", 200)])])
def test_preparation_after_a_restart_counts_for_the_type_that_it_was_for(
    azure: Simulator, tmp_path: Path, then: str, approved: list[tuple[str, int]]
) -> None:
    azure.post("/events", {**LATE, "type": "Redeploy", "name": "changes"})
    fleet, prepare = fleet_with_a_restart(azure, tmp_path)

    def becomes(kind: str) -> None:
        azure.post("/events/changes/change", {"type": kind})

    course = {"Read the prepared hosts again": partial(becomes, "Freeze"), PAUSE: partial(becomes, then)}
    ran = fleet.maintain(prepare, at={**course, WAIT: partial(azure.advance, 6 * 3600)})
    assert sorted(fleet.course_of("prepare")) == ["vm1", "vm1", "vm2"] and approvals(fleet) == approved
    assert {row["approval"] for row in rows(ran).values()} == {"approved" if approved else "not_prepared"}
    assert approved or "its preparation for Freeze does not count for Redeploy" in ran.stdout
