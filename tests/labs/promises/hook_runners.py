# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role hook_runner on the hosts: the hook runners prepare and recover, the playbook coordinates them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.plan import PREPARE, RECOVER
from chaos.vm import STEP_COMMAND, Vm
from promises.coordinators import Playbook
from promises.world import Hosts, World
from support.hosts.ansible_inventory import ansible_on, apply_role
from support.hosts.role_host import APPROVE_WHEN_PREPARED, COMMAND, SERVICE
from support.wait import wait_until

RUN = "hook-runner"


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
    applied = apply_role(
        ansible, folder, "hook_runner", {f"hook_runner_{name}": value for name, value in given.items()}
    )
    assert applied.status == 0, applied.text


def _hook(steps: tuple[str, ...]) -> str:
    return "#!/bin/sh\n" + " && ".join(f"{STEP_COMMAND} {step} {RUN}" for step in steps) + "\n"


class HookRunners(Playbook):
    """Hook runners with `leader: external`, and the playbook with `maintenance_leader: external`."""

    name = "playbook with hook runners"
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
        wait_until(
            lambda: not any(vm.is_drained for vm in self.world.vms.values()), "the recoveries", self.world.explain
        )
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
