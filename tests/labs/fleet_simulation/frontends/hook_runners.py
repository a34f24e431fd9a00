# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A hook runner on each VM: the hosts of the fleet, with the documents of the world, rules, and operators.

They approve by themselves, or the role does with `maintenance_leader: external`: the coordinator of the fleet, with
module event_approve.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.session import (
    ImdsSession,
)

from azure_scheduled_events.document import EventDocument, parse_document
from fleet_simulation.azure_model import Group, date_at
from fleet_simulation.coordinator import Coordinator, Variables
from fleet_simulation.frontends.event_modules import event_approve
from fleet_simulation.frontends.evidence import Grounds, Views, Word
from fleet_simulation.frontends.scenario import HORIZON
from fleet_simulation.frontends.world import World
from fleet_simulation.host import Host
from fleet_simulation.profiles import POLICY, Profile
from hook_runner.maintenance.record import ApprovalRequest

# share of the hook runs that fail; chances, for each VM of a run, of a kill, of an outage, and of an operator
FAILING_HOOKS, KILL, OUTAGE, OPERATOR = 0.15, 0.1, 0.1, 0.4

_WHEN: Mapping[str, Any] = {"concerns_me": True}
NOW = {"rules": [{"name": "now", "when": _WHEN, "approve": "now"}]}
EVEN_IF_FAILED = {
    "rules": [{"name": "even if failed", "when": _WHEN, "approve": {"when": "after_prepare", "on_failure": "approve"}}]
}
# for `make_profiles`
CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "prepared": {"policy": POLICY},
    "selective": {"policy": POLICY, "hooks": {"prepare/10-drain": {"types": ["Reboot", "Redeploy"]}}},
    "now": {"policy": NOW},
    "even if failed": {"policy": EVEN_IF_FAILED},
}
# what the rules of a configuration say of the VM that approves
_SPEAKS_FOR_ITSELF = ("now", "even if failed")
# share of the reads of a coordinator that are lost
LOSS = 0.05
_MODULE = "event_approve"
# the coordinator looks for events of several VMs
_SOMETHING: Any = SimpleNamespace(is_listed=True, vms=("vm1", "vm2"))


class DocumentsOfHost(Group):
    """The documents of one VM, for a host of the fleet."""

    def __init__(self, world: World, vm: str) -> None:
        super().__init__(vm, world.vms)
        self._world = world
        # the next document may always be another one
        self.settled_at = math.inf

    def document(self, now: float, from_second: bool) -> EventDocument:
        document = parse_document(self._world.document(self.name, from_second, self.name).body)
        return document._replace(server_time=date_at(now).replace(microsecond=0))


class HookRunners:
    """The hosts. Each approves by itself."""

    def __init__(self, world: World, folder: Path, profiles: Mapping[str, Profile]) -> None:
        self._world = world
        chosen = world.chance.choice(sorted(profiles))
        self._leader = world.chance.choice(("self-only", "first", "external"))
        self._rules = Word(own=chosen in _SPEAKS_FOR_ITSELF, others=self._leader == "first")
        self._words: dict[tuple[str, str], Word] = {}
        self.hosts = make_hosts(world, folder, profiles[chosen], self._leader, self._approve)
        world.grounds = self._grounds

    def run(self) -> None:
        chance = self._world.chance
        disturb(self._world, self.hosts)
        for host in self.hosts.values():
            if chance.random() < OPERATOR:
                self._world.agenda.at(chance.uniform(3.0, HORIZON), partial(self._ask, host))
        self._world.agenda.run_until(HORIZON)

    def _approve(self, host: Host, event_id: str) -> None:
        self._world.approve(host.name, event_id)

    def _ask(self, host: Host) -> None:
        """Have an operator approve an event on a host, as it is now."""
        if host.daemon is None:
            return
        chance, key = self._world.chance, self._world.chance.choice(self._world.event_ids).casefold()
        force, release_others = chance.random() < 0.5, chance.random() < 0.7
        kinds, vms = self._world.reads.known(key, host.name)
        # the daemon sends at once what it may
        self._words[host.name, key] = Word(
            own=force, others=release_others, unknown=force, kinds=frozenset(kinds) or None, vms=vms
        )
        runner = host.daemon.runner
        record = runner.records.find(key)
        if record is None or not runner.approve(record, ApprovalRequest("alice", force, release_others)).accepted:
            del self._words[host.name, key]
        host.wake_in(0.0)

    def _grounds(self, vm: str, key: str) -> Grounds:
        host = self.hosts[vm]
        assert host.daemon is not None
        listed = [event for event in host.daemon.status()["events"] if event["event_id"].casefold() == key]
        words = [self._rules, *(word for each, word in self._words.items() if each == (vm, key))]
        # a daemon knows of no VM but its own
        return Grounds(
            self._world.reads.of(vm),
            lambda name, kind: name == vm and not host.ledger.unprepared(key, kind),
            tuple(words),
            [name for event in listed for name in event["resources"]],
        )


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
            self._world.reads.of(vm), lambda name, kind: name == vm and not host.ledger.unprepared(key, kind)
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
                unprepared = self._of_vm[name].ledger.unprepared(key, kind)
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


def make_hosts(
    world: World, folder: Path, profile: Profile, leader: str, approve: Callable[[Host, str], None]
) -> dict[str, Host]:
    return {
        vm: Host(
            vm,
            DocumentsOfHost(world, vm),
            profile,
            leader,
            folder,
            world.agenda,
            world.chance,
            approve,
            lambda event_id: None,
            FAILING_HOOKS,
        )
        for vm in world.vms
    }


def disturb(world: World, hosts: Mapping[str, Host]) -> None:
    """Power the hosts on, and put some faults on the agenda."""
    for host in hosts.values():
        world.agenda.at(world.chance.uniform(0.0, 3.0), host.power_on)
        if world.chance.random() < KILL:
            world.agenda.at(world.chance.uniform(5.0, HORIZON), partial(host.kill_daemon, 2.0))
        if world.chance.random() < OUTAGE:
            world.agenda.at(world.chance.uniform(5.0, HORIZON), partial(host.fail_imds, 10.0))
