# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet in virtual time: lost and late messages, reboots, restarts of the engine, hostile minions.

    python tests/salt_fleet/simulation.py --minions 1000 --events 10000 --seeds 3
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    for folder in ("plugins/module_utils", "salt/_utils", "tests"):
        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from azure_events_engine.messages import Ask, Hint, Input, Known, Returned, Save, SaveName, Saved, Tick
from azure_events_engine.reducer import reduce, restored
from azure_events_engine.settings import Settings
from azure_events_engine.state import State
from azure_events_engine.store import as_dict, from_dict
from salt_fleet.model import Azure, Event, HostileMinion, ModelMinion

TYPES = ("Reboot", "Redeploy", "Freeze", "Preempt")


@dataclass
class Plan:
    """Sizes and chances of one run."""

    seed: int
    minions: int = 60
    events: int = 300
    loss: float = 0.05
    hostile: float = 0.05
    restarts: int = 5
    every: float = 0.0


@dataclass
class Result:
    """What came of it."""

    events: int
    approved: int
    approved_twice: int
    unprepared: list[str]
    not_approved: list[str]
    sessions: int
    left_prepared: list[str]
    recovered_otherwise: list[str]
    jobs: int
    most_maintenances: int
    seconds: float

    def problems(self) -> list[str]:
        return [*self.unprepared, *self.left_prepared, *self.recovered_otherwise]


class Simulation:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.chance = random.Random(plan.seed)
        self.now = 0.0
        self.azure = Azure()
        self.events: list[Event] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.jobs = 0
        self.most_maintenances = 0
        self._generation = 0
        self._tick_at = -1.0
        self._disk: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.state = State(Settings())
        self._make_minions()

    def _make_minions(self) -> None:
        names = ["vm%04d" % number for number in range(self.plan.minions)]
        for name in names:
            hostile = self.chance.random() < self.plan.hostile
            kind = HostileMinion if hostile else ModelMinion
            # a third have minion ids that are not the names of their VMs
            minion = kind(name if self.chance.random() < 0.67 else "id-" + name, name, self.azure, self.chance)
            self.azure.minions[name] = minion
        for minion in self.azure.minions.values():
            if isinstance(minion, HostileMinion):
                minion.victims = self.chance.sample(names, 3)
        self.by_name = {minion.name: minion for minion in self.azure.minions.values()}

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + seconds, self._count, what))

    def run(self) -> Result:
        began = time.perf_counter()
        at = 30.0
        for number in range(self.plan.events):
            at += self.chance.expovariate(1.0) * (self.plan.every or 1200.0 / self.plan.minions)
            self.later(at, lambda number=number: self._announce(number))  # type: ignore[misc]
        for _number in range(self.plan.restarts):
            self.later(self.chance.uniform(10.0, at), self._restart)
        self._learn()
        self._tick()
        end = at + 7200.0
        while self._queue and self._queue[0][0] <= end:
            self.now, _count, what = heapq.heappop(self._queue)
            what()
        return self._result(time.perf_counter() - began)

    def _announce(self, number: int) -> None:
        kind = self.chance.choice(TYPES)
        vms = list(self.chance.sample(sorted(self.azure.minions), min(self.plan.minions, self.chance.choice([1, 1, 2, 3, 5, 20]))))
        if self.chance.random() < 0.05:
            vms.append("nobody%d" % number)
        notice = 30.0 if kind == "Preempt" else 900.0
        lasts = self.chance.uniform(5.0, 120.0)
        event = Event("E%05d" % number, kind, tuple(vms), self.now, self.now + notice, lasts)
        self.azure.lasting[event.event_id] = event
        self.events.append(event)
        self._tell(event)
        self.later(notice, lambda: self._start(event))
        self._watch(event)

    def _watch(self, event: Event) -> None:
        """An approved event starts soon."""
        if event.started_at is None:
            if event.approvals:
                self.later(self.chance.uniform(0.5, 5.0), lambda: self._start(event))
            else:
                self.later(1.0, lambda: self._watch(event))

    def _start(self, event: Event) -> None:
        if event.started_at is not None:
            return
        event.begin(self.now)
        self._tell(event)
        if event.event_type != "Freeze":
            for vm in event.vms:
                minion = self.azure.minions.get(vm)
                if minion is not None:
                    minion.reboot(self.now, event.lasts)
                    self.later(event.lasts, lambda minion=minion: self._input(Hint(minion.name, started=True)))  # type: ignore[misc]
        self.later(event.lasts + 0.01, lambda: self._over(event))

    def _over(self, event: Event) -> None:
        self._tell(event)
        self.azure.lasting.pop(event.event_id, None)

    def _tell(self, event: Event) -> None:
        for vm in event.vms:
            minion = self.azure.minions.get(vm)
            if minion is not None and self.now >= minion.down_until and self.chance.random() > self.plan.loss:
                self.later(self.chance.uniform(0.0, 1.5), lambda minion=minion: self._input(Hint(minion.name)))  # type: ignore[misc]

    def _restart(self) -> None:
        """The engine is killed; it comes back later with what is on its disk, which is lost now and then."""
        if not self._is_up:
            return
        self._generation += 1
        if self.chance.random() < 0.3:
            self._disk.clear()
        generation = self._generation
        self.later(self.chance.uniform(0.5, 120.0), lambda: self._come_back(generation))

    def _come_back(self, generation: int) -> None:
        if generation != self._generation:
            return
        written = {key: from_dict(json.loads(text), self.now) for key, text in self._disk.items()}
        self.state = restored(State(Settings()), written, dict(self._names))
        self._generation += 1
        self._learn()
        self._tick()

    @property
    def _is_up(self) -> bool:
        return self._generation % 2 == 0

    def _learn(self) -> None:
        self._input(Known(frozenset(self.by_name)))

    def _tick(self) -> None:
        generation = self._generation
        self._input(Tick())
        self.later(1.0, lambda: self._tick() if generation == self._generation else None)

    def _input(self, given: Input) -> None:
        if not self._is_up:
            return
        inputs = [given]
        while inputs:
            self.state, actions = reduce(self.state, inputs.pop(0), self.now)
            for action in actions:
                if isinstance(action, Ask):
                    self._publish(action)
                elif isinstance(action, Save):
                    if action.maintenance is None:
                        self._disk.pop(action.key, None)
                    else:
                        self._disk[action.key] = json.dumps(as_dict(action.maintenance))
                    if action.needed:
                        inputs.append(Saved(action.key))
                elif isinstance(action, SaveName):
                    self._names[action.minion] = action.vm
        if not isinstance(given, Tick) and self._tick_at < self.now:
            # several inputs are decided on together
            self._tick_at = self.now + 0.1
            generation = self._generation
            self.later(0.1, lambda: self._input(Tick()) if generation == self._generation else None)
        self.most_maintenances = max(self.most_maintenances, len(self.state.maintenances))

    def _publish(self, ask: Ask) -> None:
        self.jobs += 1
        for name in ask.minions:
            if self.chance.random() > self.plan.loss:
                self.later(self.chance.uniform(0.05, 0.5), lambda name=name: self._work(ask, self.by_name[name]))  # type: ignore[misc]

    def _work(self, ask: Ask, minion: ModelMinion) -> None:
        if self.now < minion.down_until:
            return
        if ask.function == "status":
            self._return(ask, minion, minion.status(self.now))
        elif ask.function == "prepare":
            event_id = ask.kwargs["event_id"]
            seconds, answer = minion.begin_prepare(event_id, self.now)
            if answer is not None:
                self._return(ask, minion, answer)
            else:
                self.later(seconds, lambda: self._end_prepare(ask, minion))
        elif ask.function == "recover":
            self._return(ask, minion, minion.recover(ask.kwargs["event_id"], self.now))
        else:
            self._return(ask, minion, minion.approve_prepared(ask.kwargs["event_id"], ask.kwargs["resources"], self.now))

    def _end_prepare(self, ask: Ask, minion: ModelMinion) -> None:
        if minion.working == ask.kwargs["event_id"] and self.now >= minion.down_until:
            self._return(ask, minion, minion.end_prepare(ask.kwargs["event_id"], self.now))

    def _return(self, ask: Ask, minion: ModelMinion, answer: Any) -> None:
        generation = self._generation
        if self.chance.random() > self.plan.loss:
            late = self.chance.uniform(20.0, 200.0) if self.chance.random() < 0.01 else self.chance.uniform(0.01, 0.3)
            self.later(late, lambda: self._input(Returned(ask.job, minion.name, answer)) if generation == self._generation else None)

    def _result(self, seconds: float) -> Result:
        honest = [minion for minion in self.azure.minions.values() if minion.is_honest]
        return Result(
            events=len(self.events),
            approved=sum(1 for event in self.events if event.approvals),
            approved_twice=sum(1 for event in self.events if event.approvals > 1),
            unprepared=["%s was approved, but %s was not prepared" % (event.event_id, event.unready) for event in self.events if event.unready],
            not_approved=[event.event_id for event in self.events if not event.approvals and self._should_be_approved(event)],
            sessions=sum(minion.sessions for minion in honest),
            left_prepared=["%s is still prepared: %s" % (minion.name, minion.records) for minion in honest if minion.records],
            recovered_otherwise=[
                "%s: prepared %d times, recovered %d times" % (one.name, one.sessions, one.recoveries) for one in honest if one.recoveries != one.sessions
            ],
            jobs=self.jobs,
            most_maintenances=self.most_maintenances,
            seconds=seconds,
        )

    def _should_be_approved(self, event: Event) -> bool:
        minions = [self.azure.minions.get(vm) for vm in event.vms]
        return event.event_type != "Preempt" and all(minion is not None and minion.is_honest for minion in minions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minions", type=int, default=1000)
    parser.add_argument("--events", type=int, default=10000)
    parser.add_argument("--seeds", type=int, default=1, help="number of runs")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--loss", type=float, default=0.05, help="share of messages that are lost")
    parser.add_argument("--hostile", type=float, default=0.05, help="share of minions that lie")
    parser.add_argument("--restarts", type=int, default=20, help="of the engine")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        result = Simulation(Plan(seed, options.minions, options.events, options.loss, options.hostile, options.restarts)).run()
        print("seed %d: %s" % (seed, {**vars(result), "not_approved": len(result.not_approved)}))
        failed += bool(result.problems())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
