# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The passing of time in a world.

Pure apart from its own state: every method is told what time it is (``now``, the simulator's
clock), nothing sleeps, and ``settle(now)`` carries out whatever became due, in the order in which
it was due.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..scenario.knobs import Knobs
from ..scenario.plans import EventPlan, IncarnationStep
from . import transitions
from .due_queue import DueQueue
from .events import ENDED, ScheduledStep, SimulatedEvent
from .occurrence import Occurrence
from .timing import next_step
from .world import World


class Simulation:
    """A world whose events appear, start and end. ``epoch`` as in ``begin``; None leaves that to a later call."""

    def __init__(
        self,
        world: World,
        plans: Iterable[EventPlan] = (),
        incarnations: Iterable[IncarnationStep] = (),
        epoch: float | None = None,
    ) -> None:
        self.world = world
        self._plans = tuple(plans)
        self._incarnations = tuple(incarnations)
        self._steps: list[tuple[float, IncarnationStep]] = []
        self._queue = DueQueue()
        self._next_due = math.inf
        self._latest = -math.inf
        if epoch is not None:
            self.begin(epoch)

    def begin(self, epoch: float) -> None:
        """Make ``epoch`` simulated time 0: the scenario's events lie in its future."""
        self.world.epoch = epoch
        for plan in self._plans:
            self.add(plan, epoch)
        moments = [(epoch + self.world.to_wall_seconds(step.at), step) for step in self._incarnations]
        self._steps = sorted(moments, key=lambda each: each[0])
        self._update_next_due()

    def next_due(self) -> float:
        """The moment of the next transition, infinity when nothing is to come: the hot path compares this."""
        return self._next_due

    def advance_to(self, now: float) -> list[Occurrence]:
        """Carry out every transition due until ``now``, each at its own moment, in order."""
        happened: list[Occurrence] = []
        while self._next_due <= now:
            # never before what already happened: an approval may set an event free whose own moment
            # is past
            self._latest = max(self._latest, self._next_due)
            happened += self._run_next_step(self._latest)
            self._update_next_due()
        self._latest = max(self._latest, now)
        return happened

    def _run_next_step(self, moment: float) -> list[Occurrence]:
        if self._steps and self._steps[0][0] == self._next_due:
            return transitions.step_incarnation(self.world, self._steps.pop(0)[1], moment)
        for scope in self.world.hidden_scopes():
            if scope.hidden_until == self._next_due:
                scope.reveal_events()
                self.world.bump_incarnation([scope] if self.world.events_visible_to(scope) else [])
                return []
        event = self.world.live[self._queue.next()[1]]
        happened = transitions.run_step(self.world, event, self._next_of(event), moment)
        self._plan(event)
        return happened

    def _update_next_due(self) -> None:
        moments = [self._queue.next()[0]] + [scope.hidden_until for scope in self.world.hidden_scopes()]
        self._next_due = min(moments + [moment for moment, _step in self._steps[:1]])

    def reschedule(self, *events: SimulatedEvent) -> None:
        """Find out anew when the next transition is due, after ``events`` (none: anything) changed from outside."""
        for event in events or self.world.events:
            self._plan(event)
        self._update_next_due()

    def _plan(self, event: SimulatedEvent) -> None:
        """Put ``event``, and those whose time depends on it, into the queue; a finished one leaves it."""
        for each in {event, *self.world.batch(event), *self.world.waiting_for(event)}:
            self._queue.schedule(each.number, self._next_of(each).moment)
        if event.status == ENDED:
            self.world.retire(event)

    def _next_of(self, event: SimulatedEvent) -> ScheduledStep:
        return next_step(event, self.world.batch(event), self.world.rules)

    def add(self, plan: EventPlan, base: float) -> SimulatedEvent:
        """Add an event to the world, whose ``plan.at`` counts from ``base``."""
        event = self.world.add(plan, base)
        self._plan(event)
        return event

    def apply_knobs(self, knobs: Knobs) -> None:
        """Use other knobs from now on."""
        self.world.use(knobs)
        self.reschedule()
