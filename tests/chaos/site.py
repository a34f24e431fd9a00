# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What a chaos run happens in: VMs with sshd behind one 169.254.169.254, the simulator there, and Ansible's project folder."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chaos import wires
from chaos.controller import PROGRAM, Controller
from chaos.plan import PREPARE, RECOVER, Event, Plan
from chaos.vm import ROTATE, Mark, Vm, make_key
from support import simulator_process
from support.hosts.apply_impact import DONE, Impacts
from support.hosts.bridge import IMDS
from support.hosts.lab import Lab
from support.simulator_process import ControlError, Simulator

PLAYBOOK = "azure_imds.scheduled_events.maintenance"
PATIENCE = 60
TASK_TIMEOUT = 20
# begins a command that runs on a machine of another name
ON_ANOTHER_MACHINE = ("unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "elsewhere")
KNOBS = {"rate_limit": 0, "start_delay": "0.5s", "idle_disable": 0}


class RealImpacts(Impacts):
    """The interruptions, one at a time for each VM; what kills it does not close its connections."""

    def __init__(self, vms: Mapping[str, Vm], folder: Path) -> None:
        super().__init__({name: vm.host for name, vm in vms.items()}, folder)
        self._vms = vms

    def answer(self, act: str, name: str) -> str:
        with self._vms[name].lock:
            if act != "crash":
                return super().answer(act, name)
            self._vms[name].die()
        return DONE


class Site:
    """One set of VMs.

    Args:
        plan: what they are, and how their steps behave.
        folder: what stays of the run.
        sockets: a folder with a short path, for those of ssh.
        collections: where the collection is that is tested.
    """

    def __init__(
        self, plan: Plan, folder: Path, sockets: Path, collections: Path, vms: Mapping[str, Vm], simulator: Simulator
    ) -> None:
        self.plan, self.vms, self.simulator = plan, vms, simulator
        self._folder = folder
        self._announced: dict[str, float] = {}
        self._project()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))},
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets),
            "ANSIBLE_PIPELINING": str(plan.pipelining),
            "ANSIBLE_SHOW_CUSTOM_STATS": "1",
            "ANSIBLE_NOCOLOR": "1",
        }

    def _project(self) -> None:
        for name, steps in (("prepare", PREPARE), ("recover", RECOVER)):
            tasks = [
                {"name": f"Step {step}", "ansible.builtin.command": f"{ROTATE} {step} {{{{ chaos_run }}}}"}
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

    def run(self, name: str, *, elsewhere: bool = False, take_over: bool = False) -> Controller:
        """Start the playbook, on the controller or on another one, which may replace the notes of other runs."""
        variables = {
            "chaos_run": name,
            "maintenance_prepare": str(self._folder / "prepare.yml"),
            "maintenance_recover": str(self._folder / "recover.yml"),
            "maintenance_patience": PATIENCE,
            "maintenance_task_timeout": TASK_TIMEOUT,
            "maintenance_take_over": take_over,
        }
        words = ["-i", str(self._folder / "inventory.json"), "-e", json.dumps(variables), PLAYBOOK]
        return Controller(
            name,
            [*(ON_ANOTHER_MACHINE if elsewhere else ()), PROGRAM, *words],
            self._environment,
            self._folder / (name + ".log"),
        )

    def announce(self, event: Event) -> str:
        """An event appears; returns its id."""
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
        """When it appeared, as a Unix time."""
        return self._announced.get(event_id, 0.0)

    def marks(self) -> list[Mark]:
        return sorted(mark for vm in self.vms.values() for mark in vm.marks())

    def azure_log(self) -> list[dict[str, Any]]:
        return list(self.simulator.get("/log")["lines"])

    def living(self) -> list[dict[str, Any]]:
        """Events that are announced or under way."""
        return [event for event in self.simulator.get("/events")["events"] if event["gone_at"] is None]

    def end_events(self) -> None:
        """Cancel what has not started, and end what has."""
        for event in self.living():
            with contextlib.suppress(ControlError):  # it has just ended
                self.simulator.post(
                    f"/events/{event['id']}/{'cancel' if event['status'] == 'Scheduled' else 'complete'}"
                )

    def heal(self, but: str | None = None) -> None:
        """No fault is left, but for a VM that stays down."""
        self.simulator.delete("/faults")
        for name, vm in self.vms.items():
            vm.forget_failures()
            if name != but:
                vm.heal()


@contextlib.contextmanager
def site_of(plan: Plan, folder: Path, sockets: Path, collections: Path) -> Iterator[Site]:
    """The site of a plan, in namespaces that this process has of its own."""
    make_key(folder / "key")
    key = (folder / "key.pub").read_text()
    with Lab("azure-imds-chaos", folder) as lab:
        wires.lay_out()
        vms = {}
        for number, name in enumerate(plan.vms, 1):
            host = lab.host(name)
            vms[name] = Vm(host, wires.Wire(name, number, host.address), folder, key)
        for failure in plan.failures:
            vms[failure.vm].let_fail(failure)
        for slow in plan.slow:
            vms[slow.vm].let_be_slow(slow)
        with RealImpacts(vms, folder / "lab") as impacts:
            scenario = {
                "groups": {"set": {"kind": "availability_set", "vms": {name: {} for name in vms}}},
                "knobs": KNOBS,
                "impact": impacts.commands,
            }
            sources = [word for name, vm in vms.items() for word in ("--source", f"{name}={vm.host.address}")]
            with simulator_process.start(scenario, sources, listen=IMDS + ":80") as simulator:
                yield Site(plan, folder, sockets, collections, vms, simulator)


def wait_until(is_so: Any, seconds: float, pause: float = 0.05) -> bool:
    """Whether it came to be so in that time."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
