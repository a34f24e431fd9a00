# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet in virtual time: lost and late messages, reboots, restarts of the engine, hostile minions."""

from __future__ import annotations

import heapq
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from azure_events_engine.messages import Hint, Input, Known, PublishJob, Returned, Save, Saved, SaveName, Tick
from azure_events_engine.reducer import reduce, restored
from azure_events_engine.settings import Settings
from azure_events_engine.state import State
from azure_events_engine.store import as_dict, from_dict
from support.salt_simulation.model import Azure, Event, ModelMinion


@dataclass
class Plan:
    """Sizes and chances of one run."""

    seed: int
    minions: int = 60
    events: int = 300
    loss: float = 0.05
    hostile: float = 0.05
    restarts: int = 5
    masters: int = 1


@dataclass
class Result:
    events: int
    approved: int
    approved_twice: int
    unprepared: list[str]
    not_approved: list[str]
    prepared: int
    left_prepared: list[str]
    recovered_otherwise: list[str]
    jobs: int

    def problems(self) -> list[str]:
        return [*self.unprepared, *self.left_prepared, *self.recovered_otherwise]


class Master:
    """An engine with its disk."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
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
        now = self._simulation.now
        written = {key: from_dict(json.loads(text), now) for key, text in self._disk.items()}
        self.state = restored(State(Settings()), written, dict(self._names))
        self.generation += 1
        self.is_up = True
        self.give(Known(frozenset(self._simulation.by_name)))
        self._tick(self.generation)

    def kill(self) -> None:
        """Kill it; it starts later with its disk, which is lost in some runs."""
        if self.is_up:
            self.is_up = False
            if self._simulation.chance.random() < 0.3:
                self._disk.clear()
            self._simulation.later(self._simulation.chance.uniform(0.5, 120.0), self.start)

    def give(self, given: Input, generation: int | None = None) -> None:
        """Apply an input, unless it was sent to an earlier start of the engine."""
        if not self.is_up or generation not in (None, self.generation):
            return
        inputs = [given]
        while inputs:
            self.state, actions = reduce(self.state, inputs.pop(0), self._simulation.now)
            for action in actions:
                if isinstance(action, PublishJob):
                    self.jobs += 1
                    self._simulation.publish(self, action)
                elif isinstance(action, Save):
                    inputs += self._save(action)
                elif isinstance(action, SaveName):
                    self._names[action.minion] = action.vm
        if not isinstance(given, Tick) and self._tick_at < self._simulation.now:
            # several inputs are decided on together
            self._tick_at = self._simulation.now + 0.1
            self._simulation.later(0.1, partial(self.give, Tick(self._tick_at), self.generation))

    def _save(self, action: Save) -> list[Input]:
        if action.maintenance is None:
            self._disk.pop(action.key, None)
        else:
            self._disk[action.key] = json.dumps(as_dict(action.maintenance))
        return [Saved(action.key)] if action.needed else []

    def _tick(self, generation: int) -> None:
        if self.is_up and generation == self.generation:
            self.give(Tick(self._simulation.now))
            self._simulation.later(1.0, partial(self._tick, generation))


class Simulation(ABC):
    """One run of a plan; the subclass draws the minions and the events."""

    azure: Azure
    by_name: dict[str, ModelMinion]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.chance = random.Random(plan.seed)
        self.now = 0.0
        self.events: list[Event] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._make_minions()
        self.masters = [Master(self) for _number in range(plan.masters)]

    @abstractmethod
    def _make_minions(self) -> None:
        """Set ``azure`` and ``by_name``."""

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + seconds, self._count, what))

    def run(self) -> Result:
        at = 30.0
        for number in range(self.plan.events):
            at += self.chance.expovariate(1.0) * 1200.0 / self.plan.minions
            self.later(at, partial(self._announce, number))
        for number in range(self.plan.restarts):
            self.later(self.chance.uniform(10.0, at), self.masters[number % len(self.masters)].kill)
        for master in self.masters:
            master.start()
        end = at + 7200.0
        while self._queue and self._queue[0][0] <= end:
            self.now, _count, what = heapq.heappop(self._queue)
            what()
        return self._result()

    @abstractmethod
    def _announce(self, number: int) -> None:
        """Announce an event."""

    def _watch(self, event: Event) -> None:
        """An approved event starts soon."""
        if event.started_at is None:
            approved = event.approvals > 0
            self.later(
                self.chance.uniform(0.5, 5.0) if approved else 1.0,
                partial(self._start if approved else self._watch, event),
            )

    def _start(self, event: Event) -> None:
        if event.started_at is not None:
            return
        event.started_at = self.now
        self._hint(event)
        if event.event_type != "Freeze":
            for minion in self._minions(event):
                minion.reboot(self.now, event.lasts)
                self.later(event.lasts, partial(self._give_all, Hint(minion.name, started=True)))
        self.later(event.lasts + 0.01, partial(self._end, event))

    def _end(self, event: Event) -> None:
        self._hint(event)
        self.azure.lasting.pop(event.event_id, None)

    def _hint(self, event: Event) -> None:
        for minion in self._minions(event):
            if self.now >= minion.down_until and self.chance.random() > self.plan.loss:
                self.later(self.chance.uniform(0.0, 1.5), partial(self._give_all, Hint(minion.name)))

    def _give_all(self, given: Input) -> None:
        for master in self.masters:
            master.give(given)

    def _minions(self, event: Event) -> list[ModelMinion]:
        return [self.azure.minions[vm] for vm in event.vms if vm in self.azure.minions]

    def publish(self, master: Master, ask: PublishJob) -> None:
        for name in ask.minions:
            if self.chance.random() > self.plan.loss:
                self.later(
                    self.chance.uniform(0.05, 0.5),
                    partial(self._work, master, master.generation, ask, self.by_name[name]),
                )

    def _work(self, master: Master, generation: int, ask: PublishJob, minion: ModelMinion) -> None:
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
            answer = minion.approve_prepared(ask.kwargs["event_id"], ask.kwargs["resources"], self.now)
        self._return(master, generation, ask, minion, answer)

    def _end_prepare(self, master: Master, generation: int, ask: PublishJob, minion: ModelMinion) -> None:
        if minion.working == ask.kwargs["event_id"] and self.now >= minion.down_until:
            self._return(master, generation, ask, minion, minion.end_prepare(ask.kwargs["event_id"], self.now))

    def _return(self, master: Master, generation: int, ask: PublishJob, minion: ModelMinion, answer: Any) -> None:
        if self.chance.random() > self.plan.loss:
            seconds = (
                self.chance.uniform(20.0, 200.0) if self.chance.random() < 0.01 else self.chance.uniform(0.01, 0.3)
            )
            self.later(seconds, partial(master.give, Returned(ask.job, minion.name, answer), generation))

    def _result(self) -> Result:
        honest = [minion for minion in self.azure.minions.values() if minion.is_honest]
        return Result(
            events=len(self.events),
            approved=sum(1 for event in self.events if event.approvals),
            approved_twice=sum(1 for event in self.events if event.approvals > 1),
            unprepared=[
                f"{event.event_id} was approved, but {event.unready} was not prepared"
                for event in self.events
                if event.unready
            ],
            not_approved=[
                event.event_id for event in self.events if not event.approvals and self._should_be_approved(event)
            ],
            prepared=sum(one.sessions for one in honest),
            left_prepared=[f"{minion.name} is still prepared: {minion.records}" for minion in honest if minion.records],
            recovered_otherwise=[
                f"{one.name}: prepared {one.sessions} times, recovered {one.recoveries} times"
                for one in honest
                if one.recoveries != one.sessions
            ],
            jobs=sum(master.jobs for master in self.masters),
        )

    def _should_be_approved(self, event: Event) -> bool:
        minions = self._minions(event)
        return (
            event.event_type != "Preempt"
            and len(minions) == len(event.vms)
            and all(minion.is_honest for minion in minions)
        )
