# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""VMs of one availability set, each with the process of a hook runner, and a play that coordinates them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.ansible_hosts import Hosts
from support.daemon.daemon_process import PYTHONPATH, DaemonProcess
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure
from support.maintenance.fleet import PLAYBOOK
from support.simulator_process import Simulator
from support.wait import wait_until

DECIDE = "Decide which events may be approved"
POLICY = {
    "name": "prepared first",
    "rules": [{"name": "mine", "when": {"concerns_me": True}, "approve": "after_prepare"}],
}


class HookRunners:
    """The hook runners of some VMs, and the hosts of Ansible on this machine that are these VMs.

    ``names`` are the VMs that are hosts of the play, with the variables ``connection``; ``more`` has the variables of
    further hosts, by name.
    """

    def __init__(
        self,
        simulator: Simulator,
        folder: Path,
        names: tuple[str, ...] = ("vm1", "vm2"),
        connection: dict[str, Any] | None = None,
        **more: dict[str, Any],
    ) -> None:
        self.azure = Azure(simulator)
        self._folder = folder
        self.daemons: dict[str, DaemonProcess] = {}
        hosts = {}
        for name in names:
            own = folder / name
            own.mkdir()
            harness = RunnerHarness(own, self.azure, name, policy=POLICY, leader="external")
            self.daemons[name] = DaemonProcess(harness)
            hosts[name] = {
                **(connection or {}),
                "maintenance_endpoint": simulator.endpoints[name],
                "maintenance_receipts": str(own / "receipts"),
                "maintenance_leader": "external",
                "maintenance_hook_runner_command": self.command(name),
            }
        self.hosts = Hosts(folder, {**hosts, **more})
        self.hosts.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "1"

    def command(self, name: str) -> str:
        """Write the command azure-scheduled-events of this VM, and return its path."""
        path = self._folder / name / "azure-scheduled-events"
        config = self._folder / name / "config.yml"
        verb = f'verb=$1; shift\nexec {sys.executable} -m hook_runner "$verb" --config {config} "$@"'
        path.write_text(f"#!/bin/sh\nexport PYTHONPATH={PYTHONPATH}\n{verb}\n")
        path.chmod(0o755)
        return str(path)

    def hook(self, name: str, hook: str, body: str) -> None:
        """Write the hook STAGE/NAME of a VM; its body may wait while a file exists."""
        self.daemons[name].harness.hook(hook, body)

    def start(self) -> HookRunners:
        for daemon in self.daemons.values():
            daemon.start()
        return self

    def close(self) -> None:
        for daemon in self.daemons.values():
            daemon.close()

    def status(self, name: str) -> dict[str, Any]:
        return dict(self.daemons[name].data("status")[1])

    def wait_for(self, name: str, event_id: str, **members: Any) -> None:
        """Wait until the status of a VM has an event with these members."""

        def has() -> bool:
            events = [each for each in self.status(name).get("events", ()) if each["event_id"] == event_id]
            return any(all(each[key] == value for key, value in members.items()) for each in events)

        wait_until(has, f"{name}: {event_id} {members}", lambda: (self.status(name), self.daemons[name].log()[-5:]))

    def coordinate(
        self, *options: str, at: dict[str, Callable[[], object]] | None = None, playbook: str = PLAYBOOK, **given: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a playbook, by default that of the collection, for hosts with maintenance_leader: external."""
        variables = {"maintenance_patience": 400, "maintenance_within": 5 * 3600}
        return self.hosts.playbook(playbook, {**variables, **given}, *options, at=at)

    def approvals(self) -> list[dict[str, Any]]:
        return [line for line in self.azure.simulator.get("/log")["lines"] if line["what"] == "approval"]
