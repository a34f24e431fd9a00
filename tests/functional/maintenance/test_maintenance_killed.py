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


def maintain(fleet: Fleet, at: dict[str, Callable[[], object]], recover: str = "true") -> None:
    drained = fleet.folder / "drained-{{ inventory_hostname }}"
    fleet.maintain(f"touch {drained}", recover=f"{recover} && rm -f {drained}", at=at)


@pytest.mark.all
@pytest.mark.parametrize("task", [NOTE, PREPARE, PREPARED, WAIT])
def test_killed_at_a_task_and_event_over_then_next_run_recovers(
    azure: Simulator, fleet: Fleet, tmp_path: Path, task: str
) -> None:
    azure.post("/events", FREEZE)
    maintain(fleet, {task: kill})
    azure.advance(2 * 3600)
    ran = fleet.maintain(recover=f"rm -f {tmp_path}/drained-{{{{ inventory_hostname }}}}", at={WAIT: lambda: None})
    assert ran.returncode == 0, ran.stdout
    assert not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")
    assert fleet.note("vm1") is fleet.note("vm2") is None


@pytest.mark.all
@pytest.mark.parametrize("task", [PREPARE, APPROVE, WAIT])
def test_killed_at_a_task_and_event_still_listed_then_next_run_completes_it(
    azure: Simulator, fleet: Fleet, task: str
) -> None:
    azure.post("/events", LATE)
    maintain(fleet, {task: kill})
    maintain(fleet, {})
    assert not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1", "vm2"}
    assert len(fleet.approvals()) == 1 and fleet.reasons_of_starts() == ["approved"]


def killed_in_the_recovery(fleet: Fleet) -> Path:
    """Kill a run while the hosts recover; return a file with which the commands of this recovery end."""
    recovers, goes_on = fleet.folder / "recovers", fleet.folder / "goes_on"

    def kill_in_recovery() -> None:
        fleet.start_and_end_events()
        wait_until(recovers.exists)
        kill()

    slow = f"touch {recovers} && until test -e {goes_on}; do sleep 0.05; done"
    maintain(fleet, {WAIT: kill_in_recovery}, recover=slow)
    assert is_drained(fleet, "vm1") and is_drained(fleet, "vm2")
    return goes_on


def test_killed_during_the_recovery_then_next_run_recovers(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", FREEZE)
    goes_on = killed_in_the_recovery(fleet)
    maintain(fleet, {WAIT: lambda: None})
    assert not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")
    goes_on.touch()


@pytest.mark.all
def test_preparation_waits_for_a_command_of_a_killed_recovery(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", FREEZE)
    goes_on = killed_in_the_recovery(fleet)
    azure.post("/events", {**FREEZE, "type": "Reboot", "resources": ["vm1"]})

    def end_the_command() -> None:
        wait_until(lambda: len((fleet.note("vm1") or {"earlier_runs": []})["earlier_runs"]) == 1)
        goes_on.touch()

    # the command ends before the host prepares for the next event
    drained_while_waiting = []

    def look() -> None:
        drained_while_waiting.append(is_drained(fleet, "vm1"))
        fleet.start_and_end_events()

    maintain(fleet, {NOTE: end_the_command, WAIT: look})
    assert drained_while_waiting == [True] and not is_drained(fleet, "vm1") and not is_drained(fleet, "vm2")
