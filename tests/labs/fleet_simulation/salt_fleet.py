# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet of minions in groups, with events that change, backends that differ, and messages that come twice.

It extends `support.salt_simulation`, which has the masters with their disks, the ordinary and the
hostile minions, and the loss of messages. The invariants are checked when something happens.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import Any

from azure_events_engine.messages import PublishJob
from fleet_simulation.azure_model import NOTICE, make_groups
from fleet_simulation.ledger import Violation
from support.salt_simulation.model import Answer, Azure, Event, HostileMinion, ModelMinion
from support.salt_simulation.simulation import Master, Plan, Result, Simulation

KINDS = ("Freeze", "Freeze", "Reboot", "Reboot", "Redeploy", "Preempt")
# seconds after the end of its last event, or after its last restart, in which a minion is recovered
RECOVERED_WITHIN = 900.0
AUDIT_INTERVAL = 120.0
# seconds after a reboot in which the engine must have noticed it
SETTLED = 10.0


@dataclass
class SaltPlan(Plan):
    """As `Plan`, with groups.

    Attributes:
        changes: share of the events that are cancelled or moved.
        longest_lag: seconds by which a document is late at most.
        unknown: share of the polls at which IMDS does not answer.
        twice: share of the returns that arrive twice.
    """

    group_sizes: tuple[int, ...] = (1, 1, 2, 3, 5, 8, 20)
    changes: float = 0.2
    longest_lag: float = 6.0
    unknown: float = 0.03
    twice: float = 0.03


class GroupedEvent(Event):
    """An event whose documents are late on some polls."""

    gone_at = float("inf")
    lag = 0.0


class GroupAzure(Azure):
    """Azure with documents that are late on some polls; see `SaltPlan` for ``longest_lag``."""

    def __init__(self, chance: random.Random, longest_lag: float) -> None:
        super().__init__()
        self._chance = chance
        self._longest_lag = longest_lag
        self._of_vm: dict[str, list[GroupedEvent]] = {}

    def add(self, event: GroupedEvent) -> None:
        event.lag = self._chance.choice((0.0, 0.0, 0.5, 1.0)) * self._longest_lag
        self.lasting[event.event_id] = event
        for vm in event.vms:
            self._of_vm.setdefault(vm, []).append(event)

    def forget(self, event: GroupedEvent) -> None:
        self.lasting.pop(event.event_id, None)
        for vm in event.vms:
            self._of_vm[vm].remove(event)

    def of(self, vm: str, now: float) -> list[Event]:
        """Return the events of one document, which may be late."""
        moment = now - (self._longest_lag if self._chance.random() < 0.2 else 0.0)
        found: list[Event] = []
        for event in self._of_vm.get(vm, ()):
            seen_at = max(moment, now - event.lag)
            if event.announced_at <= seen_at < event.gone_at:
                found.append(event)
        return found


class GroupMinion(ModelMinion):
    """An ordinary minion whose IMDS sometimes does not answer; it reads further documents before it recovers."""

    unknown = 0.0

    def status(self, now: float) -> Answer:
        found = super().status(now)
        if self.chance.random() < self.unknown:
            found.update(available=False, complete=False, events=[], reason="no answer within 10 s")
        return found

    def recover(self, event_id: str, now: float) -> Answer:
        if any(event.event_id in self.records for event in self.azure.of(self.vm, now)):
            return self.done(event_id, "still_listed")
        return super().recover(event_id, now)


class SaltFleet(Simulation):
    """Runs one plan.

    Attributes:
        violations: found so far, the first one first.
    """

    plan: SaltPlan
    azure: GroupAzure

    def __init__(self, plan: SaltPlan) -> None:
        self.violations: list[Violation] = []
        self._dirty_since: dict[str, float] = {}
        super().__init__(plan)
        self._groups = make_groups(plan.minions, plan.group_sizes, self.chance)
        self._weights = [len(group.vms) for group in self._groups]
        self.later(AUDIT_INTERVAL, self._audit)

    def run(self) -> Result:
        result = super().run()
        for text in result.problems():
            self._violated("at the end", "", "", text)
        return result

    def approve(self, event: Event, vm: str) -> None:
        """Check an approval that reached Azure."""
        for unready in event.unready:
            minion = self.azure.minions.get(unready)
            text = f"approved by {vm}; record: {minion and minion.records.get(event.event_id)}"
            self._violated("approval after all have prepared", unready, event.event_id, text)
        event.unready.clear()
        for minion in self._minions(event):
            rebooted = minion.is_honest and event.event_id in minion.old_boot
            if rebooted and self.now - minion.down_until > SETTLED:
                text = f"approved by {vm}; it has rebooted since"
                self._violated("approval after all have prepared", minion.name, event.event_id, text)
        if event.approvals > 1:
            self._violated("approval once", vm, event.event_id, f"{event.approvals} approvals")

    def _make_minions(self) -> None:
        self.azure = GroupAzure(self.chance, self.plan.longest_lag)
        names = [f"vm{number:04d}" for number in range(self.plan.minions)]
        for name in names:
            is_hostile = self.chance.random() < self.plan.hostile
            kind = HostileMinion if is_hostile else GroupMinion
            minion = kind(name if self.chance.random() < 0.67 else f"id-{name}", name, self.azure, self.chance)
            if isinstance(minion, HostileMinion):
                minion.victims = self.chance.sample(names, 3)
            elif isinstance(minion, GroupMinion):
                minion.unknown = self.plan.unknown
            self.azure.minions[name] = minion
        self.by_name = {minion.name: minion for minion in self.azure.minions.values()}

    def _announce(self, number: int) -> None:
        chance = self.chance
        kind = chance.choice(KINDS)
        group = chance.choices(self._groups, self._weights)[0]
        count = min(len(group.vms), chance.choice((1, 1, 2, 3, len(group.vms))), 20)
        vms = tuple(chance.sample(group.vms, count))
        event = GroupedEvent(f"E{number:05d}", kind, vms, self.now, self.now + NOTICE[kind], chance.uniform(5.0, 120.0))
        self.azure.add(event)
        self.events.append(event)
        self._hint(event)
        self.later(NOTICE[kind], partial(self._start_at_not_before, event))
        self._watch(event)
        if chance.random() < self.plan.changes:
            change = chance.choice((self._cancel, self._move))
            self.later(chance.uniform(1.0, 0.8 * NOTICE[kind]), partial(change, event))

    def _start_at_not_before(self, event: GroupedEvent) -> None:
        if self.now >= event.not_before:
            self._start(event)

    def _start(self, event: Event) -> None:
        assert isinstance(event, GroupedEvent)
        if event.gone_at == float("inf"):
            super()._start(event)

    def _watch(self, event: Event) -> None:
        assert isinstance(event, GroupedEvent)
        if event.gone_at == float("inf"):
            super()._watch(event)

    def _cancel(self, event: GroupedEvent) -> None:
        if event.started_at is None and not event.approvals:
            self._end(event)

    def _move(self, event: GroupedEvent) -> None:
        if event.started_at is None and event.gone_at == float("inf"):
            left = event.not_before - self.now
            event.not_before = self.now + max(5.0, left + self.chance.choice((-0.5 * left, 300.0)))
            self.later(event.not_before - self.now, partial(self._start_at_not_before, event))
            self._hint(event)

    def _end(self, event: Event) -> None:
        assert isinstance(event, GroupedEvent)
        if event.gone_at == float("inf"):
            event.gone_at = self.now
            self._hint(event)
            self.later(2 * self.plan.longest_lag, partial(self.azure.forget, event))

    def _work(self, master: Master, generation: int, ask: PublishJob, minion: ModelMinion) -> None:
        event = self.azure.lasting.get(ask.kwargs.get("event_id", ""))
        before = event.approvals if event is not None else 0
        super()._work(master, generation, ask, minion)
        if event is not None and event.approvals > before and minion.is_honest:
            self.approve(event, minion.vm)

    def _return(self, master: Master, generation: int, ask: PublishJob, minion: ModelMinion, answer: Any) -> None:
        super()._return(master, generation, ask, minion, answer)
        if self.chance.random() < self.plan.twice:
            super()._return(master, generation, ask, minion, answer)

    def _audit(self) -> None:
        """Find minions that stay prepared although nothing hinders their recovery."""
        for minion in self.by_name.values():
            is_busy = self.now < minion.down_until or bool(self.azure.of(minion.vm, self.now))
            if not minion.is_honest or not minion.records or is_busy or not all(each.is_up for each in self.masters):
                self._dirty_since.pop(minion.name, None)
            elif self.now - self._dirty_since.setdefault(minion.name, self.now) > RECOVERED_WITHIN:
                self._violated("recovered in time", minion.name, "", f"still has {minion.records}")
                minion.records.clear()
        self.later(AUDIT_INTERVAL, self._audit)

    def _violated(self, invariant: str, minion: str, event_id: str, text: str) -> None:
        self.violations.append(Violation(invariant, minion, event_id, text, self.now))
