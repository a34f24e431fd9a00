# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A host that waits uses no fork: with one fork all hosts wait at once, and recover as their events end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import yaml

from support.ansible_hosts import KillController
from support.maintenance.fleet import FREEZE, LATE, WAIT, Fleet, failed
from support.simulator_process import Simulator
from support.wait import wait_until

pytestmark = pytest.mark.all

ROLE = {"name": "azure_imds.scheduled_events.maintenance"}


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


def test_waiting_processes_end_after_their_controller(azure: Simulator, tmp_path: Path) -> None:
    """They end with their attempt, and a host that they waited for recovers in the next run."""
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path)
    site = in_short_attempts(tmp_path)
    running = []

    def kill() -> None:
        azure.advance(2)
        fleet.wait_for_polls()
        running.extend(processes_with(str(tmp_path / "inventory.json")))
        raise KillController

    fleet.hosts.playbook(site, fleet.steps(), "--forks", "1", at={WAIT: kill})
    assert len(running) >= 3
    wait_until(lambda: not processes_with(str(tmp_path / "inventory.json")))
    azure.advance(2 * 3600)
    ran = fleet.maintain("true", at={WAIT: lambda: None})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1", "vm2"} and fleet.note("vm1") is fleet.note("vm2") is None


def test_death_of_a_waiting_process_fails_its_host(azure: Simulator, tmp_path: Path) -> None:
    """Ansible does not notice it, and would wait for the result forever."""
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path)

    def kill() -> None:
        azure.advance(2)
        fleet.wait_for_polls()
        parents = {pid: parent_of(pid) for pid in processes_with(str(tmp_path / "inventory.json"))}
        (controller,) = [pid for pid, parent in parents.items() if parent == str(os.getpid())]
        waiting = [pid for pid, parent in parents.items() if parent in parents and parent != controller]
        assert len(waiting) == 2
        for pid in waiting:
            os.kill(int(pid), signal.SIGKILL)

    ran = fleet.hosts.playbook(in_short_attempts(tmp_path), fleet.steps(), at={WAIT: kill})
    assert failed(ran) == {"vm1", "vm2"} and "the process that waited for the host has died" in ran.stdout
    for name in ("vm1", "vm2"):
        assert "has died" in (fleet.note(name) or {})["left_because"]


def in_short_attempts(folder: Path) -> str:
    """Write a playbook with the entry points of the role, whose waits ask each host again and again for a second."""
    quick = {"azure_imds.scheduled_events.maintenance_wait": {"attempt": 1}}
    play = {"hosts": "all", "gather_facts": False}
    entry = [{"import_role": {**ROLE, "tasks_from": name}} for name in ("prepare_and_approve", "wait_and_recover")]
    site = folder / "site.yml"
    site.write_text(
        yaml.safe_dump(
            [
                {**play, "tasks": [entry[0]]},
                {**play, "name": WAIT, "strategy": "free", "module_defaults": quick, "tasks": [entry[1]]},
            ]
        )
    )
    return str(site)


def parent_of(pid: str) -> str:
    # the second field is a name in parentheses, which may contain any character
    return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1]


def processes_with(word: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(pid)
    return found
