# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A folder with the playbook maintenance and its tasks, for the commands of docs/troubleshooting.md."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support.ansible_hosts import TIMEOUT
from support.maintenance.fleet import WAIT, Fleet, variables
from support.simulator_process import Simulator

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
