# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ansible: the output for each symptom, and the effect of the remedy."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import simulator_process
from support.ansible_hosts import TIMEOUT
from support.maintenance.fleet import FREEZE, LATE, MANUAL, PAIR, PREPARE, WAIT, Fleet, variables
from support.simulator_process import Simulator
from support.troubleshooting.page import Section

pytestmark = pytest.mark.all

FAILS = "- name: {} the load balancer\n  ansible.builtin.command: test -e /srv/load-balancer-answers\n"
PLAYBOOK = """- name: Take the web servers through maintenance
  ansible.builtin.import_playbook: azure_imds.scheduled_events.maintenance
  vars:
    maintenance_hosts: all
"""
OWN_OPTIONS = "endpoint={{ maintenance_endpoint }}"


class AnsibleProject:
    """The reader's folder; its hosts are VMs of the simulator.

    Attributes:
        folder: with the playbook, the tasks and the inventory.
        at: name of a task -> function to call when it begins; by default the events start and end
            while the hosts wait.
    """

    def __init__(self, azure: Simulator, folder: Path, *names: str) -> None:
        self._azure = azure
        self.folder = folder
        own = {"maintenance_prepare": "drain.yml", "maintenance_recover": "undrain.yml"}
        fleet = Fleet(azure, folder, (), **{name: {**variables(azure, folder, name), **own} for name in names})
        self._hosts = fleet.hosts
        self._hosts.environment.pop("ANSIBLE_SHOW_CUSTOM_STATS")
        self.at: dict[str, Callable[[], object]] = {WAIT: fleet.start_and_end_events}
        self.write("maintenance.yml", PLAYBOOK)
        self.write("drain.yml", self._task("touch", "drained"))
        self.write("undrain.yml", self._task("rm -f", "drained"))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text.replace("/srv", str(self.folder)), encoding="utf-8")

    def set(self, **more: object) -> None:
        """Set variables of all hosts."""
        path = self.folder / "inventory.json"
        inventory = json.loads(path.read_text())
        for host in inventory["all"]["hosts"].values():
            host.update(more)
        path.write_text(json.dumps(inventory))

    def is_drained(self, name: str) -> bool:
        return (self.folder / name / "drained").exists()

    def run(self, command: str, at: dict[str, Callable[[], object]] | None = None) -> tuple[int, str]:
        """Run a command of the page, with these functions or those of `self.at`; return its exit code and output."""
        program, *words = shlex.split(command)
        if program == "ansible-playbook":
            ran = self._hosts.playbook(str(self.folder / words[0]), None, *words[1:], at=self.at if at is None else at)
        else:
            # the modules have to find the simulator
            given = words.pop(words.index("--args") + 1) if "--args" in words else ""
            words = [*[word for word in words if word != "--args"], "--args", f"{OWN_OPTIONS} {given}"]
            ran = subprocess.run(
                [str(Path(sys.executable).with_name(program)), "-i", str(self.folder / "inventory.json"), *words],
                env={**self._hosts.environment, "PATH": os.environ["PATH"]},
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        text = ran.stdout.replace(str(self.folder), "/srv")
        for endpoint in self._azure.endpoints.values():
            text = text.replace(endpoint, "http://169.254.169.254")
        return ran.returncode, "\n".join(line.rstrip() for line in text.splitlines())

    @staticmethod
    def _task(command: str, name: str) -> str:
        path = "/srv/{{ inventory_hostname }}"
        return f"- name: Change the load balancer\n  ansible.builtin.command: {command} {path}/{name}\n"


@pytest.fixture
def pair() -> Iterator[Simulator]:
    """Azure with vm1 and vm2 of one availability set."""
    with simulator_process.start({"groups": PAIR, "knobs": {"rate_limit": 0}}, args=MANUAL) as running:
        yield running


@pytest.fixture
def project(pair: Simulator, tmp_path: Path) -> AnsibleProject:
    return AnsibleProject(pair, tmp_path, "vm1", "vm2")


def approvals(azure: Simulator) -> int:
    return len([line for line in azure.get("/log")["lines"] if line["what"] == "approval"])


@pytest.mark.symptom("A module reaches no IMDS")
def test_module_without_imds_succeeds_when_imds_answers(
    section: Section, project: AnsibleProject, pair: Simulator
) -> None:
    pair.post("/faults", {"kind": "refuse", "vm": "vm1"})
    section.see(project.run, 2)
    pair.delete("/faults")
    section.see(project.run)


@pytest.mark.symptom("A module withholds the approval")
def test_event_of_two_vms_is_approved_with_the_option(
    section: Section, project: AnsibleProject, pair: Simulator
) -> None:
    pair.post("/events", {**LATE, "id": section.event_id, "duration": 5})
    section.see(project.run)
    assert approvals(pair) == 0
    section.see(project.run)
    assert approvals(pair) == 1


@pytest.mark.symptom("The playbook prepares no host")
def test_event_outside_of_the_limit_of_time_is_prepared_with_another_limit(
    section: Section, project: AnsibleProject, pair: Simulator
) -> None:
    project.set(maintenance_within=1800)
    pair.post("/events", {**LATE, "id": section.event_id})
    section.see(project.run)
    assert approvals(pair) == 0
    section.see(project.run, 0, 0)
    assert approvals(pair) == 1


@pytest.mark.symptom("The playbook approves nothing")
def test_vm_outside_of_the_play_is_named(section: Section, project: AnsibleProject, pair: Simulator) -> None:
    project.at = {WAIT: lambda: None}
    project.set(maintenance_patience=1)
    pair.post("/events", {**LATE, "id": section.event_id})
    section.see(project.run, 2)
    assert approvals(pair) == 0
    project.at = AnsibleProject(pair, project.folder, "vm1", "vm2").at
    section.see(project.run)
    assert approvals(pair) == 1


@pytest.mark.symptom("The tasks that prepare a host fail")
def test_failed_preparation_is_named(section: Section, project: AnsibleProject, pair: Simulator) -> None:
    project.write("drain.yml", FAILS.format("Leave"))
    pair.post("/events", {**FREEZE, "resources": ["vm1"], "id": section.event_id})
    section.see(project.run, 2)
    assert approvals(pair) == 0


@pytest.mark.symptom("A host stays drained after the playbook")
def test_next_run_recovers_the_host(section: Section, project: AnsibleProject, pair: Simulator) -> None:
    good = (project.folder / "undrain.yml").read_text()
    project.write("undrain.yml", FAILS.format("Join"))
    pair.post("/events", {**FREEZE, "resources": ["vm1"], "id": section.event_id})
    section.see(project.run, 2)
    assert project.is_drained("vm1")
    project.write("undrain.yml", good)
    section.see(project.run)
    assert not project.is_drained("vm1")


@pytest.mark.symptom("Another run has the host")
def test_second_run_fails_while_the_first_one_works(section: Section, project: AnsibleProject, pair: Simulator) -> None:
    pair.post("/events", {**FREEZE, "resources": ["vm1"], "id": section.event_id})
    first, second = project.at, section.take("console")
    project.at = {}

    def run_again() -> None:
        section.see_block(second, project.run, 2)

    code, text = project.run(second.text, at={**first, PREPARE: run_again})
    assert code == 0, text
    assert approvals(pair) == 1 and not project.is_drained("vm1")
