# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The testbed of a chaos run: VMs with sshd, the simulator at 169.254.169.254, and Ansible's project folder."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos import network_links
from chaos.controller import Controller
from chaos.plan import PREPARE, RECOVER, Event, Plan
from chaos.vm import STEP_COMMAND, Mark, Vm, make_key
from support.hosts.apply_impact import DONE, Impacts
from support.hosts.lab import Lab, start_simulator
from support.simulator_process import ControlError, Simulator

PLAYBOOK = "azure_imds.scheduled_events.maintenance"
MAINTENANCE_PATIENCE = 60
TASK_TIMEOUT = 20
# of the simulator
KNOBS = {"start_delay": "0.5s", "idle_disable": 0}


class VmImpacts(Impacts):
    """Applies interruptions to VMs, one at a time for each; a crash does not close connections."""

    def __init__(self, vms: Mapping[str, Vm], folder: Path) -> None:
        super().__init__({name: vm.host for name, vm in vms.items()}, folder)
        self._vms = vms

    def answer(self, act: str, name: str) -> str:
        with self._vms[name].lock:
            if act != "crash":
                return super().answer(act, name)
            self._vms[name].crash()
        return DONE


class Testbed:
    """The VMs, the simulator and the project folder of one plan, which has the behaviour of the VMs' steps.

    The files in ``folder`` remain after the run. ``sockets`` is a folder with a short path, for sockets of ssh.
    ``collections`` has the collection under test.
    """

    def __init__(
        self,
        folder: Path,
        sockets: Path,
        collections: Path,
        vms: Mapping[str, Vm],
        simulator: Simulator,
        pipelining: bool = True,
    ) -> None:
        self.vms, self.simulator = vms, simulator
        self._folder = folder
        self._announced: dict[str, float] = {}
        self._project()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))},
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets),
            "ANSIBLE_PIPELINING": str(pipelining),
            "ANSIBLE_SHOW_CUSTOM_STATS": "1",
            "ANSIBLE_NOCOLOR": "1",
            # the result of each host at once
            "PYTHONUNBUFFERED": "1",
        }

    def _project(self) -> None:
        for name, steps in (("prepare", PREPARE), ("recover", RECOVER)):
            tasks = [
                {"name": f"Step {step}", "ansible.builtin.command": f"{STEP_COMMAND} {step} {{{{ chaos_run }}}}"}
                for step in steps
            ]
            (self._folder / (name + ".yml")).write_text(json.dumps(tasks, indent=2))
        known = self._folder / "known_hosts"
        known.write_text("".join(vm.host_key for vm in self.vms.values()))
        common = {
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(self._folder / "key"),
            "ansible_ssh_common_args": f"-F /dev/null -o UserKnownHostsFile={known}",
        }
        hosts = {name: {"ansible_host": vm.host.address} for name, vm in self.vms.items()}
        (self._folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}, indent=2))

    def run(self, name: str, **more: Any) -> Controller:
        """Start the playbook; ``more`` are variables."""
        variables = {
            "chaos_run": name,
            "maintenance_prepare": str(self._folder / "prepare.yml"),
            "maintenance_recover": str(self._folder / "recover.yml"),
            "maintenance_patience": MAINTENANCE_PATIENCE,
            "maintenance_task_timeout": TASK_TIMEOUT,
            **more,
        }
        arguments = ["-i", str(self._folder / "inventory.json"), "-e", json.dumps(variables), PLAYBOOK]
        return Controller(name, arguments, self._environment, self._folder / (name + ".log"))

    def announce(self, event: Event) -> str:
        """Let an event appear; return its id."""
        body = {
            "type": event.kind,
            "resources": list(event.resources),
            "notice": event.notice,
            "started_for": event.started_for,
            "impact_for": min(event.impact_for, event.started_for),
            "duration": event.impact_for,
        }
        event_id = str(self.simulator.post("/events", body)["id"])
        self._announced[event_id] = time.time()
        return event_id

    def announced_at(self, event_id: str) -> float:
        """Return the Unix time at which it appeared."""
        return self._announced.get(event_id, 0.0)

    def marks(self) -> list[Mark]:
        return sorted(mark for vm in self.vms.values() for mark in vm.marks())

    def azure_log(self) -> list[dict[str, Any]]:
        return list(self.simulator.get("/log")["lines"])

    def active_events(self) -> list[dict[str, Any]]:
        """Return the events that are Scheduled or Started."""
        return [event for event in self.simulator.get("/events")["events"] if event["gone_at"] is None]

    def end_events(self) -> None:
        """Cancel events that have not started, and end the others."""
        for event in self.active_events():
            if (event["type"], event["status"]) == ("Preempt", "Started"):
                continue  # it ends within seconds; before its interruption has ended, that would delete the VM
            with contextlib.suppress(ControlError):  # it has ended since then
                self.simulator.post(
                    f"/events/{event['id']}/{'cancel' if event['status'] == 'Scheduled' else 'complete'}"
                )

    def heal(self, but: str | None = None) -> None:
        """Remove all faults; a VM with the name ``but`` stays down."""
        self.simulator.delete("/faults")
        for name, vm in self.vms.items():
            vm.remove_failures()
            if name != but:
                vm.heal()


def make_vms(lab: Lab, folder: Path, names: Sequence[str]) -> dict[str, Vm]:
    """Make VMs that root can log in to with the key in the folder."""
    make_key(folder / "key")
    network_links.create_black_hole()
    vms = {}
    for number, name in enumerate(names, 1):
        host = lab.host(name)
        link = network_links.NetworkLink(name, number, host.address)
        vms[name] = Vm(host, link, folder, (folder / "key.pub").read_text())
    return vms


@contextlib.contextmanager
def open_testbed(plan: Plan, folder: Path, sockets: Path, collections: Path) -> Iterator[Testbed]:
    """Make the testbed of a plan in the namespaces of this process."""
    with Lab(folder) as lab:
        vms = make_vms(lab, folder, plan.vms)
        for failure in plan.failures:
            vms[failure.vm].inject_failure(failure)
        for slow in plan.slow:
            vms[slow.vm].slow_down(slow.step, slow.seconds)
        with VmImpacts(vms, folder / "lab") as impacts, start_simulator(impacts, knobs=KNOBS) as simulator:
            yield Testbed(folder, sockets, collections, vms, simulator, plan.pipelining)
