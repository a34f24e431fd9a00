# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The cases: what happens to the hosts, to Azure and to the coordinator during one event of four VMs.

Each case leaves the event over and all hosts healthy. The coordinator then finishes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from chaos.plan import SETTLE
from promises.coordinators import Coordinator
from promises.world import World

# seconds for which the slowest VM prepares, while something happens to the others
LONG = 600.0
OTHERS = ("vm1", "vm2", "vm3")


# what happens during an event of all VMs that it announces; returns the ID of an event that has started
Course = Callable[[World, Coordinator], str | None]


class Case(NamedTuple):
    """One case.

    Attributes:
        name: the id of its tests.
        approved_by: who may have approved it, for each permitted course: () for no approval; None if it depends on the
            coordinator.
        unprepared: the VMs that are interrupted unprepared.
        only_connection: whether they are so only because the coordinator does not reach them.
    """

    name: str
    course: Course
    approved_by: tuple[tuple[str, ...], ...] | None
    unprepared: tuple[str, ...] = ()
    only_connection: bool = False

    def happens(self, world: World, coordinator: Coordinator) -> None:
        if event := self.course(world, coordinator):
            world.complete(event)

    def unprepared_with(self, coordinator: Coordinator) -> tuple[str, ...]:
        """Return the VMs that are interrupted unprepared with this coordinator."""
        return () if self.only_connection and coordinator.hosts_prepare_alone else self.unprepared


def _undisturbed(world: World, coordinator: Coordinator) -> str:
    event = world.announce()
    coordinator.start()
    world.wait_for_start(event)
    return event


def _one_fails_to_prepare(world: World, coordinator: Coordinator) -> str:
    world.make_fail("vm3")
    event = world.announce()
    coordinator.start()
    world.wait_until_prepared("vm1", "vm2", "vm4")
    world.wait(lambda: world.count("vm3", SETTLE, "failed"), "the failure of vm3")
    return _not_approved(world, coordinator, event)


def _one_unreachable(world: World, coordinator: Coordinator) -> str:
    coordinator.make_unreachable("vm4")
    event = world.announce()
    coordinator.start()
    world.wait_until_prepared(*OTHERS)
    _not_approved(world, coordinator, event)
    world.vms["vm4"].link.mend()
    return event


def _not_approved(world: World, coordinator: Coordinator, event: str) -> str:
    coordinator.wait_for_decision()
    assert world.approvals() == [], world.explain()
    world.pass_not_before(event)
    return event


def _while_vm4_prepares(world: World, coordinator: Coordinator) -> str:
    world.vms["vm4"].slow_down(SETTLE, LONG)
    event = world.announce()
    coordinator.start()
    world.wait_until_prepared(*OTHERS)
    world.wait(lambda: world.count("vm4", SETTLE, "begin"), "vm4 prepares")
    return event


def _approver_dies(world: World, coordinator: Coordinator) -> str:
    event = _while_vm4_prepares(world, coordinator)
    coordinator.wait_until_reported("vm1")
    world.vms["vm1"].crash()
    world.end_slow_step("vm4")
    coordinator.wait_for_decision()
    if not world.approvals():
        world.vms["vm1"].heal()
    world.wait_for_start(event)
    return event


def _answer_is_lost(world: World, coordinator: Coordinator) -> str:
    fault = {"kind": "lost-answer", "method": "POST", "route": "scheduledevents", "requests": "1"}
    world.simulator.post("/faults", fault)
    return _undisturbed(world, coordinator)


def _another_client_approves(world: World, coordinator: Coordinator) -> str:
    event = _while_vm4_prepares(world, coordinator)
    world.approve_elsewhere(event)
    world.wait_for_start(event)
    return event


def _cancelled(world: World, coordinator: Coordinator) -> None:
    event = _while_vm4_prepares(world, coordinator)
    world.simulator.post(f"/events/{event}/cancel")
    world.end_slow_step("vm4")


CASES = (
    Case("undisturbed", _undisturbed, (("vm1",),)),
    Case("one fails to prepare", _one_fails_to_prepare, ((),), ("vm3",)),
    Case("one is unreachable", _one_unreachable, ((),), ("vm4",), only_connection=True),
    Case("approving host dies before the approval", _approver_dies, (("vm1",), ("vm2",))),
    Case("answer to the approval is lost", _answer_is_lost, None),
    Case("another client approves first", _another_client_approves, (("another client",),), ("vm4",)),
    Case("cancelled half-way", _cancelled, ((),)),
)
