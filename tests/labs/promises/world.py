# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Four systemd hosts of one availability set with sshd and a workload, and an Azure for each case.

The workload is that of tests/labs/chaos: each step of a preparation or recovery writes marks with times into
a file of the host, and can fail or last. The impact of an event reboots its hosts.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from chaos.evidence import Approval, Evidence, approvals_from, events_from
from chaos.plan import SETTLE
from chaos.testbed import KNOBS, VmImpacts, make_vms
from chaos.vm import STATE, Vm
from support.hosts.lab import Lab, start_simulator
from support.simulator_process import Simulator
from support.wait import wait_until

NAMES = ("vm1", "vm2", "vm3", "vm4")
# seconds; longer than any run, so that only an approval or `pass_not_before` starts the event
NOTICE, STARTED_FOR, IMPACT_FOR = 1500, 1200, 1
# seconds; a playbook on a busy machine takes minutes
LIMIT = 300.0


class ObservedImpacts(VmImpacts):
    """Applies interruptions, and records the state of the VM at the begin of each.

    Attributes:
        seen: (Unix time, VM) of each interruption.
    """

    def __init__(self, vms: Mapping[str, Vm], folder: Path) -> None:
        super().__init__(vms, folder)
        self.seen: list[tuple[float, str]] = []

    def answer(self, act: str, name: str) -> str:
        self.seen.append((time.time(), name))
        return super().answer(act, name)


class Hosts:
    """The hosts of a session, which the cases share."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.folder = folder
        self.vms = make_vms(lab, folder, NAMES)

    def reset(self) -> None:
        """Heal all hosts, and remove the marks and the remains of an earlier case."""
        for vm in self.vms.values():
            vm.heal()
            for file in vm.host.file(STATE).iterdir():
                if file.is_dir():
                    file.rmdir()
                else:
                    file.unlink()


class World:
    """Azure, the hosts and the observations of one case."""

    def __init__(self, hosts: Hosts, simulator: Simulator, impacts: ObservedImpacts, folder: Path) -> None:
        self.vms, self.simulator, self.impacts, self.folder = hosts.vms, simulator, impacts, folder
        self.key = hosts.folder / "key"
        # reasons why an event started other than an approval by the coordinator, as a case caused them
        self.not_before_passed = self.other_client = False

    def announce(self) -> str:
        """Announce a reboot of all four VMs; return the ID of the event."""
        limits = {"notice": NOTICE, "started_for": STARTED_FOR, "impact_for": IMPACT_FOR}
        event = {"type": "Reboot", "resources": list(NAMES), **limits}
        return str(self.simulator.post("/events", event)["id"])

    # acts of Azure

    def pass_not_before(self, event_id: str) -> None:
        """Let NotBefore come now, and the event start."""
        self.not_before_passed = True
        self.simulator.post(f"/events/{event_id}/change", {"notice": 1})
        self.wait_for_start(event_id)

    def approve_elsewhere(self, event_id: str) -> None:
        self.other_client = True
        self.simulator.post(f"/events/{event_id}/approve", {"as": "control-plane"})

    def complete(self, event_id: str) -> None:
        """Let the event end, when its interruptions are over."""
        self.wait(
            lambda: {name for _at, name in self.impacts.seen} == set(NAMES) or self.status(event_id) == "Gone",
            "the interruption of all VMs",
        )
        for vm in self.vms.values():
            vm.heal()
        self.simulator.post(f"/events/{event_id}/complete")

    # hosts

    def end_slow_step(self, name: str) -> None:
        """Have the slow step succeed now."""
        (self.vms[name].host.file(STATE) / f"slow-{SETTLE}").unlink(missing_ok=True)
        self.vms[name].host.run(["pkill", "-x", "sleep"], check=False)

    def make_fail(self, name: str) -> None:
        """Have the last step of the preparation fail each time: Salt repeats it, and a step cannot remove a folder."""
        (self.vms[name].host.file(STATE) / f"fail-before-{SETTLE}").mkdir()

    # observations

    def count(self, name: str, step: str, what: str = "ok") -> int:
        return sum((mark.step, mark.what) == (step, what) for mark in self.vms[name].marks())

    def wait_until_prepared(self, *names: str) -> None:
        for name in names:
            self.wait(lambda name=name: self.count(name, SETTLE), f"{name} has prepared")  # type: ignore[misc]

    def wait_for_start(self, event_id: str) -> None:
        self.wait(lambda: self.status(event_id) in ("Started", "Gone"), "the start of the event")

    def wait(self, condition: Callable[[], object], what: str) -> None:
        wait_until(condition, what, self.explain, timeout=LIMIT, pause=0.1)

    def status(self, event_id: str) -> str:
        return str(self.simulator.get(f"/events/{event_id}")["status"])

    def approvals(self) -> list[Approval]:
        """Return the approvals that IMDS accepted from a VM."""
        return approvals_from(self.log())

    def log(self) -> list[dict[str, Any]]:
        return list(self.simulator.get("/log")["lines"])

    def evidence(self) -> Evidence:
        marks = sorted(mark for vm in self.vms.values() for mark in vm.marks())
        return Evidence((), marks, events_from(self.log()), self.approvals(), ())

    def explain(self) -> str:
        return "\n".join(self.evidence().timeline())


@contextlib.contextmanager
def world_of(hosts: Hosts, folder: Path) -> Iterator[World]:
    """Make the world of one case, in a new folder."""
    folder.mkdir(parents=True)
    hosts.reset()
    impacts = ObservedImpacts(hosts.vms, folder)
    # a rulebook polls from the machine of the controller, whose address is that of no VM
    with impacts, start_simulator(impacts, knobs=KNOBS, default_vm=NAMES[1]) as simulator:
        yield World(hosts, simulator, impacts, folder)
