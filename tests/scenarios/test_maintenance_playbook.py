# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The playbook maintenance when things go wrong: nothing is approved that nobody is ready for, and everybody recovers."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import pytest
import simulator_process
from ansible_hosts import Hosts
from simulator_process import Simulator

PLAYBOOK = "azure_imds.scheduled_events.maintenance"
# Azure's clock stands still until a task of the playbook begins, so that no test is a race. NOTICE goes by when the hosts begin to wait for
# the start: whatever may start by then has started. LIFE goes by when they begin to wait for the end.
MANUAL = ["--clock", "manual"]
NOTICE, LIFE = 16 * 60, 3600
FREEZE: dict[str, Any] = {"type": "Freeze", "resources": ["vm1", "vm2"], "notice": "15m", "started_for": LIFE}
# starts only when it is approved
LATE = {**FREEZE, "notice": "4h"}
PAIR: dict[str, Any] = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}


def variables(azure: Simulator, folder: Path, name: str) -> dict[str, Any]:
    return {"maintenance_endpoint": azure.endpoints[name], "maintenance_receipts": str(folder / name)}


class Fleet:
    """vm1 and vm2 of one availability set, whose drain and undrain scripts note that they ran."""

    def __init__(self, azure: Simulator, folder: Path, names: tuple[str, ...] = ("vm1", "vm2"), **more: dict[str, Any]) -> None:
        self.azure = azure
        self._folder = folder
        self._hosts = Hosts(folder, {**{name: variables(azure, folder, name) for name in names}, **more})

    @classmethod
    def over_breaking_ssh(cls, azure: Simulator, folder: Path, down: Path) -> Fleet:
        """A fleet whose connections break while there is a file of the host's name in the folder ``down``."""
        ssh = folder / "ssh"
        ssh.write_text('#!/bin/sh\nDOWN_FOLDER=%s exec %s %s "$@"\n' % (down, sys.executable, Path(__file__).with_name("breaking_ssh.py")))
        ssh.chmod(0o755)
        # pipelining, so that no file has to be brought over the stand-in
        connection = {"ansible_connection": "ansible.builtin.ssh", "ansible_ssh_executable": str(ssh), "ansible_pipelining": True}
        return cls(azure, folder, (), **{name: {**connection, **variables(azure, folder, name)} for name in azure.endpoints})

    def maintain(
        self, prepare: str, *options: str, meanwhile: Callable[[], object] = lambda: None, at: Optional[dict[str, Callable[[], object]]] = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the playbook.

        Args:
            prepare: the shell command that prepares a host.
            options: of ansible-playbook.
            meanwhile: what happens while the hosts prepare; none of them is ready before it has happened.
            at: name of a task -> what happens as it begins, see Hosts.playbook.
        """
        happened = self._folder / "happened"

        def happens() -> None:
            meanwhile()
            happened.touch()

        course = {
            "Run the tasks that prepare this host": happens,
            "Wait for the start": lambda: self.azure.advance(NOTICE),
            "Wait for the end": lambda: self.azure.advance(LIFE),
            **(at or {}),
        }
        steps: dict[str, Any] = {"maintenance_patience": 300}
        for step, command in (("prepare", "until test -e %s; do sleep 0.05; done && %s" % (happened, prepare)), ("recover", "true")):
            tasks = self._folder / (step + ".yml")
            done = "%s && echo {{ inventory_hostname }} >> %s" % (command, self._folder / (step + ".done"))
            tasks.write_text('- ansible.builtin.shell: "%s"\n  timeout: 60\n' % done)
            steps["maintenance_" + step] = str(tasks)
        return self._hosts.playbook(PLAYBOOK, steps, *options, at=course)

    def did(self, step: str) -> set[str]:
        done = self._folder / (step + ".done")
        return set(done.read_text().split()) if done.exists() else set()

    def approvals(self) -> list[dict[str, Any]]:
        return [line for line in self.azure.get("/log")["lines"] if line["what"] == "approval"]

    def reasons_of_starts(self) -> list[str]:
        return [line["why"] for line in self.azure.get("/log")["lines"] if line["what"] == "started"]


def failed(ran: subprocess.CompletedProcess[str]) -> set[str]:
    return set(re.findall(r"^(\w+) .*failed=[1-9]", ran.stdout, re.MULTILINE))


def until(condition: Callable[[], bool]) -> None:
    """Wait for what comes in a moment, or fail after much longer than that."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


@pytest.fixture
def azure() -> Iterator[Simulator]:
    with simulator_process.start({"groups": PAIR, "knobs": {"rate_limit": 0}}, args=MANUAL) as running:
        yield running


def test_nobody_is_touched_when_nothing_is_planned(azure: Simulator, tmp_path: Path) -> None:
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain("true")
    assert ran.returncode == 0 and failed(ran) == set(), ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == set() and fleet.approvals() == []


def test_a_failed_preparation_is_never_approved_and_everybody_recovers(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain("test {{ inventory_hostname }} != vm2")
    assert ran.returncode != 0 and failed(ran) == {"vm2"}, ran.stdout
    assert fleet.approvals() == []
    assert fleet.did("prepare") == {"vm1"} and fleet.did("recover") == {"vm1", "vm2"}
    assert fleet.reasons_of_starts() == ["NotBefore reached"]


def test_a_vm_that_is_no_host_of_the_play_keeps_the_approval_back(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path, names=("vm1",))
    assert fleet.maintain("true").returncode == 0
    assert fleet.approvals() == [] and fleet.did("prepare") == fleet.did("recover") == {"vm1"}


def test_each_event_is_approved_once_by_its_first_vm(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "resources": ["vm2", "vm1"]})
    azure.post("/events", {**LATE, "type": "Reboot", "resources": ["vm1"]})
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain("true")
    assert ran.returncode == 0, ran.stdout
    assert sorted(line["vm"] for line in fleet.approvals()) == ["vm1", "vm2"]
    assert fleet.did("recover") == {"vm1", "vm2"}


def test_what_is_cancelled_during_preparation_ends_in_recovery(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "name": "it"})
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain("true", meanwhile=lambda: azure.post("/events/it/cancel"))
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1", "vm2"} and fleet.approvals() == []


def test_what_has_started_is_not_prepared_for_but_recovered_from(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "starts": "hardware_failure"})
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain("true")
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == set() and fleet.did("recover") == {"vm1", "vm2"} and fleet.approvals() == []


def test_a_host_without_imds_fails_by_itself(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path, elsewhere={"maintenance_endpoint": "http://127.0.0.1:9"})
    ran = fleet.maintain("true")
    assert failed(ran) == {"elsewhere"} and "no connection" in ran.stdout
    assert len(fleet.approvals()) == 1 and fleet.did("recover") == {"vm1", "vm2"}


def test_a_sick_imds_in_the_middle_ends_nothing(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path)

    def starts_unseen() -> None:
        azure.post("/faults", {"kind": "empty", "route": "scheduledevents", "requests": "1-2"})
        azure.advance(NOTICE)

    ran = fleet.maintain("true", at={"Wait for the start": starts_unseen})
    assert ran.returncode == 0, ran.stdout
    assert [request["vm"] for request in azure.get("/requests")["requests"] if request["fault"]].count("vm1") == 2
    assert len(fleet.approvals()) == 1 and fleet.did("recover") == {"vm1", "vm2"}


def test_hosts_that_reboot_come_back_and_recover(tmp_path: Path) -> None:
    down = tmp_path / "down"
    down.mkdir()
    command = {phase: ["sh", "-c", "%s %s/$VM_NAME" % (program, down)] for phase, program in (("start", "touch"), ("end", "rm -f"))}
    scenario = {
        "groups": PAIR,
        "events": [{**LATE, "type": "Reboot", "impact_for": "2m"}],
        "impact": {"Reboot": command},
        "knobs": {"rate_limit": 0},
    }
    with simulator_process.start(scenario, args=MANUAL) as azure:
        fleet = Fleet.over_breaking_ssh(azure, tmp_path, down)

        def goes_down() -> None:
            # no good answer from here on, so that nobody sees the start before the reboot has cut the connection
            azure.post("/faults", {"kind": "empty", "route": "scheduledevents"})
            azure.advance(2)

        def comes_back() -> None:
            until(lambda: {path.name for path in down.glob("*.missed")} == {"vm1.missed", "vm2.missed"})
            azure.advance(120)

        course = {
            "Wait for the start": goes_down,
            "Note the start": lambda: azure.delete("/faults"),
            "Wait until the host can be reached": comes_back,
        }
        ran = fleet.maintain("true", at=course)
        assert ran.stdout.count("UNREACHABLE") == 2, ran.stdout
        assert fleet.did("recover") == {"vm1", "vm2"}, ran.stdout
        assert ran.returncode == 0, ran.stdout
        assert len(fleet.approvals()) == 1


def test_an_approval_that_is_refused_fails_the_host_but_not_its_recovery(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "resources": ["vm1"]})
    azure.post("/faults", {"kind": "status", "status": 403, "method": "POST"})
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain("true")
    assert failed(ran) == {"vm1"} and "403" in ran.stdout
    assert fleet.did("recover") == {"vm1"}


def test_check_mode_changes_nothing_and_fails_nobody(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    fleet = Fleet(azure, tmp_path)
    ran = fleet.maintain("true", "--check")
    assert ran.returncode == 0, ran.stdout
    assert fleet.approvals() == [] and fleet.did("prepare") == fleet.did("recover") == set()


def test_a_vm_that_comes_to_the_event_during_preparation_keeps_the_approval_back(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**FREEZE, "name": "it", "resources": ["vm1"]})
    fleet = Fleet(azure, tmp_path, names=("vm1",))
    ran = fleet.maintain("true", meanwhile=lambda: azure.post("/events/it/change", {"resources": ["vm1", "vm2"]}))
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1"} and fleet.approvals() == []
    assert fleet.reasons_of_starts() == ["NotBefore reached"]
