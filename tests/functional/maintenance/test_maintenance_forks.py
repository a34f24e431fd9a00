# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A host that waits uses no fork: with one fork all hosts wait at once, and recover as their events end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from support.ansible_hosts import KillController
from support.maintenance.fleet import FREEZE, LATE, WAIT, Fleet, failed
from support.simulator_process import Simulator
from support.wait import wait_until

pytestmark = pytest.mark.all


def processes_of(fleet: Fleet) -> list[psutil.Process]:
    """Return the processes of ansible-playbook for these hosts."""
    inventory = str(fleet.folder / "inventory.json")
    return [process for process in psutil.process_iter(["cmdline"]) if inventory in (process.info["cmdline"] or ())]


def test_hosts_recover_while_others_wait_with_one_fork(trio: Simulator, tmp_path: Path) -> None:
    """Each host recovers when its own event is over, also the one that Ansible serves last."""
    for number, name in enumerate(("vm3", "vm1", "vm2"), 1):
        trio.post("/events", {**FREEZE, "resources": [name], "notice": "4h", "started_for": number * 3600})
    fleet = Fleet(trio, tmp_path, names=("vm1", "vm2", "vm3"))

    def end_one_after_the_other() -> None:
        trio.advance(60)
        for recovered in (["vm3"], ["vm3", "vm1"]):
            # all others are polling at the same time, with one fork
            fleet.wait_for_polls()
            trio.advance(3600)
            wait_until(lambda: fleet.course_of("recover") == recovered)
        wait_until(lambda: fleet.note("vm1") is None)
        fleet.wait_for_polls()
        assert fleet.course_of("recover") == ["vm3", "vm1"]
        trio.advance(3600)

    ran = fleet.maintain("true", "--forks", "1", at={WAIT: end_one_after_the_other})
    assert ran.returncode == 0, ran.stdout
    assert fleet.course_of("recover") == ["vm3", "vm1", "vm2"] and len(fleet.approvals()) == 3


def test_waiting_processes_end_after_their_controller(azure: Simulator, fleet: Fleet) -> None:
    """They end with their attempt, and a host that they waited for recovers in the next run."""
    azure.post("/events", LATE)
    running: list[psutil.Process] = []

    def kill() -> None:
        azure.advance(2)
        fleet.wait_for_polls()
        running.extend(processes_of(fleet))
        raise KillController

    fleet.hosts.playbook(fleet.own_plays(attempt=1), fleet.steps(), "--forks", "1", at={WAIT: kill})
    assert len(running) >= 3
    wait_until(lambda: not processes_of(fleet))
    azure.advance(2 * 3600)
    ran = fleet.maintain("true", at={WAIT: lambda: None})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1", "vm2"} and fleet.note("vm1") is fleet.note("vm2") is None


def test_death_of_a_waiting_process_fails_its_host(azure: Simulator, fleet: Fleet) -> None:
    """Ansible does not notice it, and would wait for the result forever."""
    azure.post("/events", LATE)

    def kill() -> None:
        azure.advance(2)
        fleet.wait_for_polls()
        parents = {process.pid: process.ppid() for process in processes_of(fleet)}
        (controller,) = [pid for pid, parent in parents.items() if parent == os.getpid()]
        waiting = [pid for pid, parent in parents.items() if parent in parents and parent != controller]
        assert len(waiting) == 2
        for pid in waiting:
            os.kill(pid, signal.SIGKILL)

    ran = fleet.hosts.playbook(fleet.own_plays(attempt=1), fleet.steps(), at={WAIT: kill})
    assert failed(ran) == {"vm1", "vm2"} and "the process that waited for the host has died" in ran.stdout
    for name in ("vm1", "vm2"):
        assert "has died" in (fleet.note(name) or {})["left_because"]
