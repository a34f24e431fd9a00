# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The examples of the modules' documentation run as printed, with options for IMDS and receipts added."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ansible_hosts import Hosts
from support.module_play import constant_of
from support.simulator_process import Simulator

pytestmark = pytest.mark.all

REBOOT = {"name": "reboot", "type": "Reboot", "resources": ["vm1"], "notice": "3d"}
FREEZE = {"name": "freeze", "type": "Freeze", "resources": ["vm2", "vm1"], "notice": "3d", "duration": 20}
USER_REBOOT = {"name": "user", "type": "Reboot", "resources": ["vm2"], "notice": "3d", "source": "User"}


class Project:
    """A playbook of an example's tasks, and its hosts: vm1, vm2 and optionally one outside of Azure."""

    def __init__(self, folder: Path, azure: Simulator, elsewhere: str = "") -> None:
        self.folder = folder
        self.inventory = folder / "inventory.json"
        self.azure = azure
        endpoints = {**azure.endpoints, **({"elsewhere": elsewhere} if elsewhere else {})}
        variables = {
            name: {"endpoint": url, "receipts": str(folder / ("receipts-" + name))} for name, url in endpoints.items()
        }
        self.hosts = Hosts(folder, variables)

    def run(self, module: str, *more: dict[str, Any], **options: Any) -> subprocess.CompletedProcess[str]:
        defaults = {
            "group/azure_imds.scheduled_events.scheduled_events": {"endpoint": "{{ endpoint }}"},
            "azure_imds.scheduled_events.event_approve": {"receipts": "{{ receipts }}"},
        }
        tasks = [*yaml.safe_load(constant_of(module, "EXAMPLES")), *more]
        play = {"hosts": "all", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}
        # all hosts are this machine; the script needs the name of the one that it prepares
        play["environment"] = {"HOST": "{{ inventory_hostname }}"}
        (self.folder / "playbook.yml").write_text(json.dumps([play]))
        return self.hosts.playbook(str(self.folder / "playbook.yml"), **options)

    def write_drain_script(self, fails_on: Sequence[str] = ()) -> None:
        """Write the script with which the example prepares; it fails on these hosts."""
        script = self.folder / "drain.sh"
        script.write_text(f'#!/bin/sh\nfor name in {" ".join(fails_on)}; do test "$HOST" != $name || exit 1; done\n')
        script.chmod(0o755)

    def approved(self) -> list[tuple[str, str]]:
        """Return pairs of VM and event for each approval, in order."""
        lines = [line for line in self.azure.get("/log")["lines"] if line["what"] == "approval"]
        return [(line["vm"], name) for line in lines for name in line["new"]]


def recap(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, int]]:
    lines = re.findall(r"^(\w+) +: (.*=.*)$", ran.stdout, re.MULTILINE)
    return {host: {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", counts)} for host, counts in lines}


def seconds_until(azure: Simulator, hour: int) -> float:
    """Return the simulated seconds until this hour in UTC."""
    now = datetime.fromtimestamp(azure.get("/state")["unix"], UTC)
    return (hour - now.hour) % 24 * 3600.0


def test_examples_of_event_info(simulate: Callable[..., Simulator], tmp_path: Path) -> None:
    ran = Project(tmp_path, simulate(REBOOT, FREEZE)).run("event_info")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    messages = re.findall(r'"msg": "(\w+) not before \d{4}-\d\d-\d\dT', ran.stdout)
    assert sorted(messages) == ["Freeze", "Freeze", "Reboot"]


def test_examples_of_event_facts(simulate: Callable[..., Simulator], tmp_path: Path) -> None:
    project = Project(tmp_path, simulate(REBOOT), elsewhere="http://127.0.0.1:9")
    ran = project.run("event_facts", {"name": "Go on", "ansible.builtin.command": "echo goes on"})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {host: counts["changed"] for host, counts in recap(ran).items()} == {"vm1": 0, "vm2": 1, "elsewhere": 0}


def test_files_in_the_examples_of_event_facts(simulate: Callable[..., Simulator], tmp_path: Path) -> None:
    project = Project(tmp_path, simulate(REBOOT), elsewhere="http://127.0.0.1:9")
    files = re.findall(r"^# .*, in (\S+):\n((?:#   .*\n)+)", constant_of("event_facts", "EXAMPLES"), re.MULTILINE)
    assert [name for name, _text in files] == [
        "ansible.cfg",
        "inventory/group_vars/all.yml",
        "inventory/maintenance.constructed.yml",
    ]
    for name, text in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(re.sub("^#   ", "", text, flags=re.MULTILINE))
    project.inventory.rename(tmp_path / "inventory" / "hosts.json")
    defaults = {"azure_imds.scheduled_events.event_facts": {"endpoint": "{{ endpoint }}", "timeout": 60}}
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "module_defaults": defaults, "tasks": []}]))

    def output_of(program: str, *arguments: str) -> str:
        command = [str(Path(sys.executable).with_name(program)), "-i", "inventory", *arguments]
        ran = subprocess.run(
            command, cwd=tmp_path, env=project.hosts.environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    output_of("ansible-playbook", "play.yml")
    groups = json.loads(output_of("ansible-inventory", "--list"))
    assert groups["maintenance_pending"]["hosts"] == ["vm1"]
    assert groups["maintenance_unknown"]["hosts"] == ["elsewhere"]


def test_examples_of_event_wait(simulate: Callable[..., Simulator], tmp_path: Path) -> None:
    azure = simulate({**FREEZE, "at": "1m"})

    def start() -> None:
        azure.post("/events/freeze/approve")
        azure.advance(5)

    ran = Project(tmp_path, azure).run(
        "event_wait",
        at={
            "Wait up to an hour for an event": lambda: azure.advance(60),
            "Wait for the start of these events, which may be over between two polls": start,
            "Wait until they are over": lambda: azure.post("/events/freeze/complete"),
        },
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [(counts["ok"], counts["ignored"]) for counts in recap(ran).values()] == [(3, 0), (3, 0)]


def test_examples_of_event_approve_by_night(simulate: Callable[..., Simulator], tmp_path: Path) -> None:
    azure = simulate(REBOOT, FREEZE, USER_REBOOT)
    azure.advance(seconds_until(azure, 23))
    project, before = Project(tmp_path, azure), []
    project.write_drain_script()
    ran = project.run(
        "event_approve",
        at={
            "Read the events": lambda: before.append(project.approved()),
            "Fail on hosts that are not ready": lambda: before.append(project.approved()),
        },
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert before == [[("vm2", "user")], [("vm2", "user"), ("vm1", "reboot")]]
    assert project.approved() == [*before[-1], ("vm1", "freeze")]


@pytest.mark.parametrize(
    "failing, approved",
    [([], [("vm1", "reboot"), ("vm1", "freeze")]), (["vm1"], []), (["vm2"], [("vm1", "reboot")])],
    ids=["all-are-ready", "vm1-is-not-ready", "vm2-is-not-ready"],
)
def test_examples_of_event_approve_by_day(
    simulate: Callable[..., Simulator], tmp_path: Path, failing: list[str], approved: list[tuple[str, str]]
) -> None:
    azure = simulate(REBOOT, FREEZE)
    azure.advance(seconds_until(azure, 12))
    project, before = Project(tmp_path, azure), []
    project.write_drain_script(fails_on=failing)
    ran = project.run(
        "event_approve", at={"Approve the events that affect this VM only": lambda: before.append(project.approved())}
    )
    failed = {host: counts["failed"] for host, counts in recap(ran).items()}
    assert failed == {"vm1": "vm1" in failing, "vm2": "vm2" in failing}, ran.stdout + ran.stderr
    assert before == [[]] and project.approved() == approved
