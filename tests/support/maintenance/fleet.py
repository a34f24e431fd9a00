# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Simulated VMs for the playbook maintenance, with tasks that write markers, and its plan and report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.ansible_hosts import Hosts
from support.simulator_process import Simulator
from support.wait import wait_until

PLAYBOOK = "azure_imds.scheduled_events.maintenance"
# The simulated clock moves only when a task of the playbook begins; therefore there are no races.
# NOTICE passes when the hosts begin to wait, which starts all due events. LIFE passes when each host
# has polled again.
MANUAL = ["--clock", "manual"]
NOTICE, LIFE = 16 * 60, 3600
FREEZE: dict[str, Any] = {"type": "Freeze", "resources": ["vm1", "vm2"], "notice": "15m", "started_for": LIFE}
# starts only when it is approved
LATE = {**FREEZE, "notice": "4h"}
PAIR: dict[str, Any] = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}
TRIO: dict[str, Any] = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}, "vm3": {}}}}

PREPARE = "Run the tasks that prepare this host"
WAIT = "Wait for the end of the events and recover each host"

Course = dict[str, Callable[[], object]]


def variables(azure: Simulator, folder: Path, name: str) -> dict[str, Any]:
    return {
        "maintenance_endpoint": azure.endpoints[name],
        "maintenance_receipts": str(folder / name / "receipts"),
        "maintenance_notes": str(folder / name / "notes"),
        "maintenance_patience": 300,
        "maintenance_within": 5 * 3600,
    }


def flaky_connection(folder: Path, down: Path) -> dict[str, Any]:
    """Return the variables of hosts whose connections fail by files in the folder ``down``, see flaky_ssh.py."""
    ssh = folder / "ssh"
    program = Path(__file__).with_name("flaky_ssh.py")
    ssh.write_text(f'#!/bin/sh\nDOWN_FOLDER={down} exec {sys.executable} {program} "$@"\n')
    ssh.chmod(0o755)
    # with pipelining Ansible copies no files, which flaky_ssh.py does not support
    return {"ansible_connection": "ansible.builtin.ssh", "ansible_ssh_executable": str(ssh), "ansible_pipelining": True}


class Fleet:
    """VMs of one group, whose prepare and recover tasks write markers.

    ``names`` are the VMs that are hosts of the play; ``more`` has the variables of further hosts, by name.
    """

    def __init__(
        self, azure: Simulator, folder: Path, names: tuple[str, ...] = ("vm1", "vm2"), **more: dict[str, Any]
    ) -> None:
        self.azure = azure
        self.folder = folder
        self.hosts = Hosts(folder, {**{name: variables(azure, folder, name) for name in names}, **more})
        self.hosts.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "1"

    @classmethod
    def over_flaky_ssh(cls, azure: Simulator, folder: Path, down: Path, **more: dict[str, Any]) -> Fleet:
        """Return a fleet of all VMs with flaky_connection; ``more`` has further variables of hosts, by name."""
        connection = flaky_connection(folder, down)
        hosts = {
            name: {**connection, **variables(azure, folder, name), **more.get(name, {})} for name in azure.endpoints
        }
        return cls(azure, folder, (), **hosts)

    def maintain(
        self,
        prepare: str = "true",
        *options: str,
        recover: str = "true",
        while_preparing: Callable[[], object] = lambda: None,
        at: Course | None = None,
        given: dict[str, Any] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the playbook.

        ``prepare`` and ``recover`` are shell commands, ``options`` are those of ansible-playbook, and ``given`` are
        further variables. ``while_preparing`` is called while the hosts prepare, which end their preparation only after
        it. ``at``: name of a task -> function to call as it begins, see Hosts.playbook.
        """
        happened = self.folder / "happened"

        def happens() -> None:
            while_preparing()
            happened.touch()

        course: Course = {PREPARE: happens, WAIT: self.start_and_end_events, **(at or {})}
        steps = self.steps(f"until test -e {happened}; do sleep 0.05; done && {prepare}", recover)
        return self.hosts.playbook(PLAYBOOK, {**steps, **(given or {})}, *options, at=course)

    def steps(self, prepare: str = "true", recover: str = "true") -> dict[str, Any]:
        """Write the task files of these shell commands, and return the variables of the playbook."""
        given: dict[str, Any] = {}
        for step, command in (("prepare", prepare), ("recover", recover)):
            tasks = self.folder / (step + ".yml")
            done = f"{command} && echo {{{{ inventory_hostname }}}} >> {self.folder / (step + '.done')}"
            tasks.write_text(f'- ansible.builtin.shell: "{done}"\n  timeout: 60\n')
            given["maintenance_" + step] = str(tasks)
        return given

    def own_plays(self, **wait: int) -> str:
        """Write a playbook with the entry points of the role, and these options of its wait; return its path."""
        role = "azure_imds.scheduled_events.maintenance"
        options = {"azure_imds.scheduled_events.maintenance_wait": wait}
        own = {"name": WAIT, "strategy": "free", "module_defaults": options}
        plays = [
            {
                "hosts": "all",
                "gather_facts": False,
                "tasks": [{"import_role": {"name": role, "tasks_from": entry_point}}],
                **more,
            }
            for entry_point, more in (("prepare_and_approve", {}), ("wait_and_recover", own))
        ]
        site = self.folder / "site.yml"
        site.write_text(json.dumps(plays))
        return str(site)

    def start_and_end_events(self) -> None:
        """Let events start, hosts poll, and the events end."""
        self.azure.advance(NOTICE)
        self.wait_for_polls()
        self.azure.advance(LIFE)

    def wait_for_polls(self) -> None:
        """Wait until each VM with a note has polled again."""
        latest = self.azure.get("/requests")["requests"]
        number = max((request["number"] for request in latest), default=0)
        wait_until(lambda: self._asked_after(number) >= {name for name in self.azure.endpoints if self.note(name)})

    def _asked_after(self, number: int) -> set[str]:
        requests = self.azure.get("/requests?after=%d" % number)["requests"]
        return {
            request["vm"] for request in requests if (request["method"], request["route"]) == ("GET", "scheduledevents")
        }

    def did(self, step: str) -> set[str]:
        """Return the hosts that have completed the tasks of this step."""
        return set(self.course_of(step))

    def course_of(self, step: str) -> list[str]:
        done = self.folder / (step + ".done")
        return done.read_text().split() if done.exists() else []

    def note(self, name: str) -> dict[str, Any] | None:
        """Return the note on the host, which a run may remove at any time, or None."""
        try:
            note: dict[str, Any] = json.loads((self.folder / name / "notes" / "note.json").read_text())
        except FileNotFoundError:
            return None
        return note

    def approvals(self) -> list[dict[str, Any]]:
        return [line for line in self.azure.get("/log")["lines"] if line["what"] == "approval"]

    def reasons_of_starts(self) -> list[str]:
        return [line["why"] for line in self.azure.get("/log")["lines"] if line["what"] == "started"]


def failed(ran: subprocess.CompletedProcess[str]) -> set[str]:
    return set(re.findall(r"^(\w+) .*failed=[1-9]", ran.stdout, re.MULTILINE))


def rows(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of the report by host; of a host with several events the last one."""
    return {row["host"]: row for row in _statistics(ran)["maintenance_report"]}


def planned(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return the planned events by their first host."""
    return {event["hosts"][0]: event for event in _statistics(ran)["maintenance_plan"]}


def _statistics(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    match = re.search(r"^\tRUN: (\{.*\})$", ran.stdout, re.MULTILINE)
    assert match, ran.stdout
    found: dict[str, Any] = json.loads(match[1])
    return found
