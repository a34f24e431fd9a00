# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The coordinators: what prepares the hosts, approves the event when all are prepared, and recovers them."""

from __future__ import annotations

import abc
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chaos.controller import Controller
from chaos.plan import PREPARE, RECOVER, SETTLE
from chaos.testbed import Testbed
from chaos.vm import STEP_COMMAND, Vm
from promises.world import Hosts, World
from support.eda.rulebook import Rulebook
from support.hosts.ansible_inventory import ansible_on, apply_role
from support.hosts.role_host import APPROVE_WHEN_PREPARED, COMMAND, SERVICE
from support.wait import wait_until

# seconds; a run that was lost is repeated a minute after the end of the event
RUN_LIMIT = 300.0
# of the playbook: longer than any case
LIMITS = dict.fromkeys(("maintenance_patience", "maintenance_task_timeout", "maintenance_removed_after"), 280)


class Coordinator(abc.ABC):
    """A coordinator in one case.

    Attributes:
        hosts_prepare_alone: whether hosts prepare that it does not reach.
    """

    hosts_prepare_alone = False

    def __init__(self, world: World) -> None:
        self.world = world

    def start(self) -> None:  # noqa: B027  # some have nothing to do here
        """Begin to coordinate, if it does not by itself."""

    def wait_until_reported(self, name: str) -> None:  # noqa: B027  # some have nothing to do here
        """Wait until the coordinator knows that a host has prepared, if the host does not keep the result."""

    @abc.abstractmethod
    def wait_for_decision(self) -> None:
        """Wait until it has decided about the present states of the hosts."""

    def finish(self) -> None:
        """Wait until it has recovered all hosts, or has done what it can."""
        wait_until(lambda: not self.drained(), "the recoveries", self.world.explain, timeout=RUN_LIMIT, pause=0.5)

    def make_unreachable(self, name: str) -> None:
        self.world.vms[name].link.cut_ssh()

    def close(self) -> None:  # noqa: B027  # some have nothing to do here
        """End the processes that it has started for the case."""

    def drained(self) -> list[str]:
        return [name for name, vm in self.world.vms.items() if vm.is_drained]


class Playbook(Coordinator):
    """The playbook azure_imds.scheduled_events.maintenance over ssh."""

    # it has decided, or waits for a host that is lost
    decided = re.compile(
        r"PLAY \[Wait for the end of the events and recover each host\]|TASK .*Pause before the hosts are read again\]"
    )
    variables: Mapping[str, Any] = {}

    def __init__(self, world: World, collections: Path) -> None:
        super().__init__(world)
        shutil.copy2(world.key, world.folder / "key")
        # sockets need a short path
        self.sockets = Path("/run/promises-ssh")
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        self._testbed = Testbed(world.folder, self.sockets, collections, world.vms, world.simulator)
        self.runs: list[Controller] = []

    def start(self) -> None:
        self.runs.append(self._testbed.run(f"run-{len(self.runs) + 1}", **LIMITS, **self.variables))

    def wait_until_reported(self, name: str) -> None:
        # Ansible prints the result of a host when it has it, also while the task runs on others
        self._wait(
            lambda: f"changed: [{name}]" in self._output().rpartition(f"Step {SETTLE}]")[2], f"{name} has prepared"
        )

    def wait_for_decision(self) -> None:
        self._wait_for_lines(1)

    def finish(self) -> None:
        """Wait for the run, and run once more while a host is drained."""
        self._end()
        if self.drained():
            self.start()
            self._end()

    def close(self) -> None:
        for run in self.runs:
            run.kill("kill-9-all")

    def _end(self) -> None:
        assert self.runs[-1].wait(RUN_LIMIT), self.runs[-1].output[-3000:]

    def _lines(self) -> int:
        """Return how often the output says that it has decided."""
        return len(self.decided.findall(self._output()))

    def _wait_for_lines(self, number: int) -> None:
        self._wait(lambda: self._lines() >= number, f"the output has {number} times {self.decided.pattern}")

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        wait_until(condition, what, lambda: self._output()[-3000:], pause=0.1)

    def _output(self) -> str:
        return self.runs[-1].output


def install_hook_runners(hosts: Hosts, folder: Path) -> None:
    """Install the hook runner on all hosts; it is not started."""
    folder.mkdir()
    hooks = [
        {"stage": stage, "name": "10-workload", "content": _hook(steps)}
        for stage, steps in (("prepare", PREPARE), ("recover", RECOVER))
    ]
    given: dict[str, Any] = {
        "install_packages": False,
        "policy": APPROVE_WHEN_PREPARED,
        "leader": "external",
        "hooks": hooks,
        "config": {"interval": 0.5, "timeout": 5, "hooks": {"10-workload": {"timeout": "20m"}}},
        "service_state": "stopped",
        "service_enabled": False,
    }
    ansible = ansible_on({name: vm.host for name, vm in hosts.vms.items()}, folder)
    applied = apply_role(ansible, folder, "hook_runner", given)
    assert applied.status == 0, applied.text


def _hook(steps: tuple[str, ...]) -> str:
    return "#!/bin/sh\n" + " && ".join(f"{STEP_COMMAND} {step} hook-runner" for step in steps) + "\n"


class HookRunners(Playbook):
    """Hook runners with `leader: external`, and the playbook with `maintenance_leader: external`."""

    hosts_prepare_alone = True
    decided = re.compile("Follow the events further")
    variables: Mapping[str, Any] = {"maintenance_leader": "external"}

    def __init__(self, world: World, collections: Path) -> None:
        super().__init__(world, collections)
        for vm in world.vms.values():
            vm.host.run(["systemctl", "enable", "--now", SERVICE])
        for vm in world.vms.values():
            wait_until(lambda vm=vm: _polls(vm), f"the hook runner of {vm.name}")  # type: ignore[misc]

    def wait_until_reported(self, name: str) -> None:
        """Do nothing: the hook runner keeps the result."""

    def wait_for_decision(self) -> None:
        # the round that runs now may have read the hosts before
        self._wait_for_lines(self._lines() + 2)

    def finish(self) -> None:
        """Wait for the hook runners and for the run, which reports them."""
        Coordinator.finish(self)
        self._end()

    def close(self) -> None:
        super().close()
        for vm in self.world.vms.values():
            vm.heal()
            vm.host.run(["systemctl", "disable", "--now", SERVICE], check=False)


def _polls(vm: Vm) -> bool:
    """Return True if the last poll of the hook runner succeeded, and it is idle."""
    answer = vm.host.run([COMMAND, "status", "--json"], check=False)
    data = json.loads(answer.stdout) if answer.returncode in (0, 1) and answer.stdout else {}
    return bool(data.get("imds", {}).get("ok")) and data["events"] == [] and data["maintenance"] is None


class RulebookEngine(Playbook):
    """ansible-rulebook on the machine of the controller, whose event source polls as one of the VMs."""

    def __init__(self, world: World, collections: Path) -> None:
        super().__init__(world, collections)
        inventory = json.loads((world.folder / "inventory.json").read_text())
        inventory["all"]["vars"].update(
            chaos_run="rulebook",
            maintenance_prepare=str(world.folder / "prepare.yml"),
            maintenance_recover=str(world.folder / "recover.yml"),
            **LIMITS,
        )
        hosts = world.folder / "rulebook-inventory.json"
        hosts.write_text(json.dumps(inventory))
        environment = {"ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.sockets), "ANSIBLE_PIPELINING": "1"}
        self._rulebook = Rulebook(world.folder, hosts, environment=environment)

    def start(self) -> None:
        self._rulebook.start()

    def finish(self) -> None:
        """Wait until the rulebook's runs have recovered all hosts, and the last one has ended."""
        wait_until(
            lambda: not self.drained() and self._rulebook.runs(),
            "the recoveries",
            lambda: (self.world.explain(), self._rulebook.log()[-3000:]),
            timeout=RUN_LIMIT,
            pause=0.5,
        )

    def close(self) -> None:
        self._rulebook.stop()

    def _output(self) -> str:
        return self._rulebook.log()
