# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ansible: the output for each symptom, and the effect of the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import simulator_process
from support.maintenance.fleet import FREEZE, LATE, MANUAL, PAIR, PREPARE, WAIT
from support.simulator_process import Simulator
from support.troubleshooting.ansible_project import AnsibleProject
from support.troubleshooting.page import Section

pytestmark = pytest.mark.all

FAILS = "- name: {} the load balancer\n  ansible.builtin.command: test -e /srv/load-balancer-answers\n"


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
    section.see(project.run)
    section.see(project.run)
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
        section.see_block(second, project.run)

    code, text = project.run(second.text, at={**first, PREPARE: run_again})
    assert code == 0, text
    assert approvals(pair) == 1 and not project.is_drained("vm1")
