# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A controller is killed during maintenance: the next run recovers all hosts, and approves only prepared events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.ansible_hosts import KillController
from support.maintenance.fleet import FREEZE, LATE, PREPARE, WAIT, Fleet
from support.simulator_process import Simulator
from support.wait import wait_until

NOTE = "Write a note on this host"
PREPARED = "Record that this host is prepared"
APPROVE = "Approve the events for which all VMs are prepared"


def kill() -> None:
    raise KillController


def is_drained(fleet: Fleet, name: str) -> bool:
    return (fleet.folder / ("drained-" + name)).exists()


def maintain(fleet: Fleet, at: dict[str, Callable[[], object]], prepare: str = "true", recover: str = "true") -> None:
    drained = fleet.folder / "drained-{{ inventory_hostname }}"
    fleet.maintain(f"touch {drained} && {prepare}", recover=f"{recover} && rm -f {drained}", at=at)


@pytest.mark.all
@pytest.mark.parametrize("task", [NOTE, PREPARE, PREPARED, WAIT])
def test_killed_at_a_task_and_event_over_then_next_run_recovers(azure: Simulator, tmp_path: Path, task: str) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path)
    maintain(fleet, {task: kill})
    azure.advance(2 * 3600)
    ran = fleet.maintain(recover=f"rm -f {tmp_path}/drained-{{{{ inventory_hostname }}}}", at={WAIT: lambda: None})
    assert ran.returncode == 0, ran.stdout
    assert not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")
    assert fleet.note("vm1") is fleet.note("vm2") is None


@pytest.mark.all
@pytest.mark.parametrize("task", [PREPARE, APPROVE, WAIT])
def test_killed_at_a_task_and_event_still_listed_then_next_run_completes_it(
    azure: Simulator, tmp_path: Path, task: str
) -> None:
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path)
    maintain(fleet, {task: kill})
    maintain(fleet, {})
    assert not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1", "vm2"}
    assert len(fleet.approvals()) == 1 and fleet.reasons_of_starts() == ["approved"]


@pytest.mark.all
def test_killed_after_a_failed_preparation_then_nothing_is_approved(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path)
    fails_on_vm2 = "test {{ inventory_hostname }} != vm2"
    maintain(fleet, {APPROVE: kill}, prepare=fails_on_vm2)
    maintain(fleet, {}, prepare=fails_on_vm2)
    assert fleet.approvals() == [] and fleet.reasons_of_starts() == ["NotBefore reached"]
    assert not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")


def test_killed_during_the_recovery_then_next_run_recovers(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path)
    recovers = tmp_path / "recovers"

    def kill_in_recovery() -> None:
        fleet.start_and_end_events()
        wait_until(recovers.exists)
        kill()

    maintain(
        fleet,
        {WAIT: kill_in_recovery},
        recover=f"touch {recovers} && until test -e {tmp_path}/goes_on; do sleep 0.05; done",
    )
    assert is_drained(fleet, "vm1") and is_drained(fleet, "vm2")
    maintain(fleet, {WAIT: lambda: None})
    assert not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")
    (tmp_path / "goes_on").touch()


@pytest.mark.all
def test_preparation_waits_for_a_command_of_a_killed_recovery(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path)
    recovers, goes_on = tmp_path / "recovers", tmp_path / "goes_on"

    def kill_in_recovery() -> None:
        fleet.start_and_end_events()
        wait_until(recovers.exists)
        kill()

    maintain(
        fleet,
        {WAIT: kill_in_recovery},
        recover=f"touch {recovers} && until test -e {goes_on}; do sleep 0.05; done",
    )
    azure.post("/events", {**FREEZE, "type": "Reboot", "resources": ["vm1"]})

    def end_the_command() -> None:
        wait_until(lambda: len((fleet.note("vm1") or {"earlier_runs": []})["earlier_runs"]) == 1)
        goes_on.touch()

    # the command ends before the host prepares for the next event
    drained_while_waiting = []
    maintain(
        fleet,
        {
            NOTE: end_the_command,
            WAIT: lambda: (drained_while_waiting.append(is_drained(fleet, "vm1")), fleet.start_and_end_events()),
        },
    )
    assert drained_while_waiting == [True] and not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")


@pytest.mark.all
def test_recovery_waits_for_a_drain_command_of_a_killed_run(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "resources": ["vm1"]})
    fleet = Fleet(azure, tmp_path)
    drains, goes_on = tmp_path / "drains", tmp_path / "goes_on"

    def kill_in_preparation() -> None:
        (tmp_path / "happened").touch()
        wait_until(drains.exists)
        kill()

    drained = tmp_path / "drained-vm1"
    slow = f"touch {drains} && until test -e {goes_on}; do sleep 0.05; done && touch {drained}"
    fleet.maintain(slow, at={PREPARE: kill_in_preparation})
    azure.advance(2 * 3600)

    def let_it_drain() -> None:
        fleet.wait_for_polls()
        goes_on.touch()

    ran = fleet.maintain(recover=f"rm {drained}", at={WAIT: let_it_drain})
    assert ran.returncode == 0, ran.stdout
    assert not drained.exists() and fleet.course_of("recover") == ["vm1"]
