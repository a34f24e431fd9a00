# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role with `maintenance_leader: external`: the coordinator of the fleet, with module event_approve."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.session import (
    ImdsSession,
)

from fleet_simulation.azure_model import Group
from fleet_simulation.coordinator import Coordinator, Variables
from fleet_simulation.frontends.daemons import disturb, make_hosts
from fleet_simulation.frontends.event_modules import event_approve
from fleet_simulation.frontends.evidence import Grounds, Views
from fleet_simulation.frontends.scenario import HORIZON
from fleet_simulation.frontends.world import World
from fleet_simulation.host import Host
from fleet_simulation.profiles import Profile

# share of the reads that are lost
LOSS = 0.05
_MODULE = "event_approve"
# the coordinator looks for events of several VMs
_SOMETHING: Any = SimpleNamespace(is_listed=True, vms=("vm1", "vm2"))


class Coordinated:
    """The hosts, whose hook runners only prepare, and a controller."""

    def __init__(self, world: World, folder: Path, profiles: Mapping[str, Profile]) -> None:
        self._world = world
        chosen = world.chance.choice(("prepared", "selective"))
        self._hosts = make_hosts(world, folder, profiles[chosen], "external", self._approve_alone)
        self._coordinator = _Coordinator(world, self._hosts, folder)

    def run(self) -> None:
        disturb(self._world, self._hosts)
        self._coordinator.begin()
        self._world.agenda.run_until(HORIZON)

    def _approve_alone(self, host: Host, event_id: str) -> None:
        """Take the approval of a daemon whose VM is the only one of the event."""
        self._world.grounds = lambda vm, key: Grounds(
            self._world.reads.of(vm),
            lambda name, kind: name == vm and not host.ledger.unprepared(key, kind, self._world.now),
        )
        self._world.approve(host.name, event_id)


class _Coordinator(Coordinator):
    """The coordinator, which approves by module."""

    def __init__(self, world: World, hosts: Mapping[str, Host], folder: Path) -> None:
        group = Group("all", world.vms)
        group.events.append(_SOMETHING)
        super().__init__(group, hosts, world.agenda, random.Random(world.chance.random()), LOSS, lambda decision: None)
        self._world, self._of_vm, self._folder = world, hosts, folder
        # as they were when the coordinator read each host last
        self._reports: dict[str, tuple[Views, ...]] = {}
        self._prepared: dict[tuple[str, str, str], bool] = {}

    def result_of(self, name: str) -> Variables:
        result = super().result_of(name)
        self._reports.update(self._world.reads.of(name))
        for key in map(str.casefold, self._world.event_ids):
            for kind in ("Freeze", "Reboot", "Redeploy", "Hibernate"):
                unprepared = self._of_vm[name].ledger.unprepared(key, kind, self._world.now)
                self._prepared[name, key, kind] = not unprepared
        return result

    def approved(self, decision: Mapping[str, Any]) -> Variables:
        sender = str(decision["by"])
        if not self._of_vm[sender].is_up:
            return {"failed": True, "msg": "no answer"}
        self._world.grounds = lambda vm, key: Grounds(
            # the module reads this VM's events again
            {**self._reports, **self._world.reads.of(_MODULE)},
            lambda name, kind: self._prepared.get((name, key, kind), False),
            released=decision["resources"],
            always=(_MODULE,),
        )
        self._world.reads.forget(_MODULE)
        connect = partial(self._world.session, sender, ImdsSession, reporter=_MODULE)
        return event_approve(decision, connect, str(self._folder / f"receipts-{sender}"))
