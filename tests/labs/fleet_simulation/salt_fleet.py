# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet of minions in groups in virtual time, and the masters with the real reducer of the engine.

Events change, documents are late, messages are lost or come twice, hosts reboot, masters restart, and some minions are
hostile. The invariants are checked when something happens.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from azure_events_engine.messages import Hint, Input, Known, PublishJob, Returned, Save, SaveName, Tick
from azure_events_engine.reducer import reduce, restored
from azure_events_engine.settings import Settings
from azure_events_engine.state import State
from azure_events_engine.store import as_dict, from_dict
from fleet_simulation.agenda import Agenda
from fleet_simulation.azure_model import NOTICE, make_groups
from fleet_simulation.ledger import Violation
from fleet_simulation.salt_model import Azure, Event, HostileMinion, Minion

KINDS = ("Freeze", "Freeze", "Reboot", "Reboot", "Redeploy", "Preempt")
# seconds after the end of its last event, or after its last restart, in which a minion is recovered
RECOVERED_WITHIN = 900.0
AUDIT_INTERVAL = 120.0
# seconds after a reboot in which the engine must have noticed it
SETTLED = 10.0


@dataclass
class SaltPlan:
    """Sizes and chances of one run.

    Attributes:
        loss: share of the messages that are lost.
        hostile: share of the minions that are hostile.
        group_sizes: VMs of a group, drawn for each group.
        changes: share of the events that are cancelled or moved.
        longest_lag: seconds by which a document is late at most.
        unknown: share of the polls at which IMDS does not answer.
        twice: share of the returns that arrive twice.
    """

    seed: int
    minions: int = 60
    events: int = 300
    loss: float = 0.05
    hostile: float = 0.05
    restarts: int = 5
    masters: int = 1
    group_sizes: tuple[int, ...] = (1, 1, 2, 3, 5, 8, 20)
    changes: float = 0.2
    longest_lag: float = 6.0
    unknown: float = 0.03
    twice: float = 0.03


class Result(NamedTuple):
    """Counts of events, preparations and jobs, and the events that lack an approval which they should have."""

    events: int
    approved: int
    approved_twice: int
    not_approved: list[str]
    prepared: int
    jobs: int


class Master:
    """An engine with its disk."""

    def __init__(self, fleet: SaltFleet) -> None:
        self._fleet = fleet
        self._disk: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._tick_at = -1.0
        # a new number for each start; messages to an earlier one are lost
        self.generation = 0
        self.is_up = False
        self.jobs = 0
        self.state = State(Settings())

    def start(self) -> None:
        """Start with what is on the disk."""
        now = self._fleet.now
        written = {key: from_dict(json.loads(text), now) for key, text in self._disk.items()}
        self.state = restored(State(Settings()), written, dict(self._names))
        self.generation += 1
        self.is_up = True
        self.give(Known(frozenset(self._fleet.by_name)))
        self._tick(self.generation)

    def kill(self) -> None:
        """Kill it; it starts later with its disk, which is lost in some runs."""
        if self.is_up:
            self.is_up = False
            if self._fleet.chance.random() < 0.3:
                self._disk.clear()
            self._fleet.later(self._fleet.chance.uniform(0.5, 120.0), self.start)

    def give(self, given: Input, generation: int | None = None) -> None:
        """Apply an input, unless it was sent to an earlier start of the engine."""
        if not self.is_up or generation not in (None, self.generation):
            return
        self.state, actions = reduce(self.state, given, self._fleet.now)
        for action in actions:
            if isinstance(action, PublishJob):
                self.jobs += 1
                self._fleet.publish(self, action)
            elif isinstance(action, Save):
                self._save(action)
            elif isinstance(action, SaveName):
                self._names[action.minion] = action.vm
        if not isinstance(given, Tick) and self._tick_at < self._fleet.now:
            # several inputs are decided on together
            self._tick_at = self._fleet.now + 0.1
            self._fleet.later(0.1, partial(self.give, Tick(self._tick_at), self.generation))

    def _save(self, action: Save) -> None:
        if action.maintenance is None:
            self._disk.pop(action.key, None)
        else:
            self._disk[action.key] = json.dumps(as_dict(action.maintenance))

    def _tick(self, generation: int) -> None:
        if self.is_up and generation == self.generation:
            self.give(Tick(self._fleet.now))
            self._fleet.later(1.0, partial(self._tick, generation))


class SaltFleet:
    """Runs one plan.

    Attributes:
        violations: found so far, the first one first.
    """

    def __init__(self, plan: SaltPlan) -> None:
        self.plan = plan
        self.chance = random.Random(plan.seed)
        self.events: list[Event] = []
        self.violations: list[Violation] = []
        self._agenda = Agenda()
        self.later = self._agenda.after
        self.azure = Azure(self.chance, plan.longest_lag)
        self._make_minions()
        self.by_name = {minion.name: minion for minion in self.azure.minions.values()}
        self.masters = [Master(self) for _number in range(plan.masters)]
        self._groups = make_groups(plan.minions, plan.group_sizes, self.chance)
        self._weights = [len(group.vms) for group in self._groups]
        self._dirty_since: dict[str, float] = {}
        self.later(AUDIT_INTERVAL, self._audit)

    @property
    def now(self) -> float:
        return self._agenda.now

    def run(self) -> Result:
        at = 30.0
        for number in range(self.plan.events):
            at += self.chance.expovariate(1.0) * 1200.0 / self.plan.minions
            self.later(at, partial(self._announce, number))
        for number in range(self.plan.restarts):
            self.later(self.chance.uniform(10.0, at), self.masters[number % len(self.masters)].kill)
        for master in self.masters:
            master.start()
        self._agenda.run_until(at + 7200.0)
        honest = [minion for minion in self.by_name.values() if minion.is_honest]
        for minion in honest:
            if minion.records:
                self._violated("at the end", minion.name, "", f"is still prepared: {minion.records}")
            if minion.recoveries != minion.sessions:
                text = f"prepared {minion.sessions} times, recovered {minion.recoveries} times"
                self._violated("at the end", minion.name, "", text)
        return Result(
            events=len(self.events),
            approved=sum(event.approvals > 0 for event in self.events),
            approved_twice=sum(event.approvals > 1 for event in self.events),
            not_approved=[event.event_id for event in self.events if not event.approvals and self._may_prepare(event)],
            prepared=sum(minion.sessions for minion in honest),
            jobs=sum(master.jobs for master in self.masters),
        )

    def _make_minions(self) -> None:
        names = [f"vm{number:04d}" for number in range(self.plan.minions)]
        for name in names:
            is_hostile = self.chance.random() < self.plan.hostile
            kind = HostileMinion if is_hostile else Minion
            minion_id = name if self.chance.random() < 0.67 else f"id-{name}"
            minion = kind(minion_id, name, self.azure, self.chance, self.plan.unknown)
            if isinstance(minion, HostileMinion):
                minion.victims = self.chance.sample(names, 3)
            self.azure.minions[name] = minion

    def _minions(self, event: Event) -> list[Minion]:
        return [self.azure.minions[vm] for vm in event.vms]

    def _may_prepare(self, event: Event) -> bool:
        """Return True if an event leaves time, and no minion of it is hostile."""
        return event.event_type != "Preempt" and all(minion.is_honest for minion in self._minions(event))

    # the course of an event

    def _announce(self, number: int) -> None:
        chance = self.chance
        kind = chance.choice(KINDS)
        group = chance.choices(self._groups, self._weights)[0]
        count = min(len(group.vms), chance.choice((1, 1, 2, 3, len(group.vms))), 20)
        vms = tuple(chance.sample(group.vms, count))
        event = Event(f"E{number:05d}", kind, vms, self.now, self.now + NOTICE[kind], chance.uniform(5.0, 120.0))
        self.azure.add(event)
        self.events.append(event)
        self._hint(event)
        self.later(NOTICE[kind], partial(self._start_at_not_before, event))
        self._watch(event)
        if chance.random() < self.plan.changes:
            change = chance.choice((self._cancel, self._move))
            self.later(chance.uniform(1.0, 0.8 * NOTICE[kind]), partial(change, event))

    def _start_at_not_before(self, event: Event) -> None:
        if self.now >= event.not_before:
            self._start(event)

    def _watch(self, event: Event) -> None:
        """Let an event start soon after its approval."""
        if event.is_waiting:
            is_approved = event.approvals > 0
            self.later(
                self.chance.uniform(0.5, 5.0) if is_approved else 1.0,
                partial(self._start if is_approved else self._watch, event),
            )

    def _start(self, event: Event) -> None:
        if not event.is_waiting:
            return
        event.started_at = self.now
        self._hint(event)
        if event.event_type != "Freeze":
            for minion in self._minions(event):
                minion.reboot(self.now, event.lasts)
                self.later(event.lasts, partial(self._give_all, Hint(minion.name, started=True)))
        self.later(event.lasts + 0.01, partial(self._end, event))

    def _cancel(self, event: Event) -> None:
        if event.is_waiting and not event.approvals:
            self._end(event)

    def _move(self, event: Event) -> None:
        if event.is_waiting:
            left = event.not_before - self.now
            event.not_before = self.now + max(5.0, left + self.chance.choice((-0.5 * left, 300.0)))
            self.later(event.not_before - self.now, partial(self._start_at_not_before, event))
            self._hint(event)

    def _end(self, event: Event) -> None:
        event.gone_at = self.now
        self._hint(event)
        self.later(2 * self.plan.longest_lag, partial(self.azure.forget, event))

    # messages

    def _hint(self, event: Event) -> None:
        for minion in self._minions(event):
            if self.now >= minion.down_until and self.chance.random() > self.plan.loss:
                self.later(self.chance.uniform(0.0, 1.5), partial(self._give_all, Hint(minion.name)))

    def _give_all(self, given: Input) -> None:
        for master in self.masters:
            master.give(given)

    def publish(self, master: Master, ask: PublishJob) -> None:
        for name in ask.minions:
            if self.chance.random() > self.plan.loss:
                self.later(
                    self.chance.uniform(0.05, 0.5),
                    partial(self._work, master, master.generation, ask, self.by_name[name]),
                )

    def _work(self, master: Master, generation: int, ask: PublishJob, minion: Minion) -> None:
        if self.now < minion.down_until:
            return
        answer: Any = None
        if ask.function == "status":
            answer = minion.status(self.now)
        elif ask.function == "prepare":
            seconds, answer = minion.begin_prepare(ask.kwargs["event_id"], self.now)
            if answer is None:
                self.later(seconds, partial(self._end_prepare, master, generation, ask, minion))
                return
        elif ask.function == "recover":
            answer = minion.recover(ask.kwargs["event_id"], self.now)
        else:
            event_id = ask.kwargs["event_id"]
            answer = minion.approve_prepared(event_id, ask.kwargs["resources"], self.now)
            if minion.is_honest and answer["outcome"] == "approved":
                self._check_approval(self.azure.lasting[event_id], minion.vm)
        self._return(master, generation, ask, minion, answer)

    def _end_prepare(self, master: Master, generation: int, ask: PublishJob, minion: Minion) -> None:
        if minion.working == ask.kwargs["event_id"] and self.now >= minion.down_until:
            self._return(master, generation, ask, minion, minion.end_prepare(ask.kwargs["event_id"], self.now))

    def _return(self, master: Master, generation: int, ask: PublishJob, minion: Minion, answer: Any) -> None:
        returned = partial(master.give, Returned(ask.job, minion.name, answer), generation)
        self._send_return(returned)
        if self.chance.random() < self.plan.twice:
            self._send_return(returned)

    def _send_return(self, returned: Callable[[], None]) -> None:
        if self.chance.random() > self.plan.loss:
            is_late = self.chance.random() < 0.01
            self.later(self.chance.uniform(20.0, 200.0) if is_late else self.chance.uniform(0.01, 0.3), returned)

    # checks

    def _check_approval(self, event: Event, vm: str) -> None:
        """Check an approval that reached Azure."""
        for minion in self._minions(event):
            record = minion.records.get(event.event_id)
            is_old = event.event_id in minion.old_boot and self.now - minion.down_until > SETTLED
            if minion.is_honest and (record != "prepared" or is_old):
                text = f"approved by {vm}; {'it has rebooted since' if is_old else f'record: {record}'}"
                self._violated("approval after all have prepared", minion.name, event.event_id, text)
        if event.approvals > 1:
            self._violated("approval once", vm, event.event_id, f"{event.approvals} approvals")

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
