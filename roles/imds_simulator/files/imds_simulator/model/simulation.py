# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The passing of time in a world.

Pure except for its own state: every method takes the time as an argument (``now``, the simulator's
clock), and no method sleeps. ``advance_to(now)`` runs the steps that became due, in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..scenario.knobs import Knobs
from ..scenario.plans import EventPlan, IncarnationStep
from . import transitions
from .events import ENDED, NO_STEP, PLANNED, SCHEDULED, Occurrence, ScheduledStep, SimulatedEvent
from .world import BatchKey, World


class Simulation:
    """A world whose events appear, start and end. With the ``epoch`` None the caller calls ``begin`` later."""

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
        # number of an event -> when its next step is due, and the number: of equal moments the older event is first
        self._due: dict[int, tuple[float, int]] = {}
        self._next_due = math.inf
        self._latest = -math.inf
        # batch -> when its last approval came; None: one is missing, or no event waits
        self._decisions: dict[BatchKey, float | None] = {}
        if epoch is not None:
            self.begin(epoch)

    def begin(self, epoch: float) -> None:
        """Begin the scenario: ``epoch`` is simulated time 0 on the simulator's clock."""
        self.world.epoch = epoch
        for plan in self._plans:
            self.world.add(plan, epoch)
        moments = [(max(epoch, self.world.moment_of(step.at, epoch)), step) for step in self._incarnations]
        self._steps = sorted(moments, key=lambda each: each[0])
        self.reschedule()

    def next_due(self) -> float:
        """Return the moment of the next step, or infinity; every request calls this, therefore it is precomputed."""
        return self._next_due

    def advance_to(self, now: float) -> list[Occurrence]:
        """Run the steps that are due until ``now``, each at its own moment, in order."""
        occurrences: list[Occurrence] = []
        while self._next_due <= now:
            # time never goes back: after an approval the start of an event may be due in the past
            self._latest = max(self._latest, self._next_due)
            occurrences += self._run_next_step(self._latest)
            self._update_next_due()
        self._latest = max(self._latest, now)
        return occurrences

    def _run_next_step(self, moment: float) -> list[Occurrence]:
        if self._steps and self._steps[0][0] == self._next_due:
            return transitions.step_incarnation(self.world, self._steps.pop(0)[1], moment)
        for scope in self.world.hidden_scopes():
            if scope.hidden_until == self._next_due:
                scope.reveal_events()
                self.world.bump_incarnation([scope] if self.world.events_visible_to(scope) else [])
                return []
        event = self.world.live[min(self._due.values())[1]]
        occurrences = transitions.run_step(self.world, event, self._next_step(event, self._deciding(event)), moment)
        self._enqueue(event)
        return occurrences

    def _update_next_due(self) -> None:
        moments = [scope.hidden_until for scope in self.world.hidden_scopes()]
        moments += [moment for moment, _step in self._steps[:1]]
        self._next_due = min([min(self._due.values(), default=(math.inf, 0))[0], *moments])

    def reschedule(self, *events: SimulatedEvent, now: float = -math.inf) -> None:
        """Compute again when the next step is due, after a change of ``events`` (none: of any event) at ``now``.

        A step that the change makes due earlier is due now.
        """
        self._latest = max(self._latest, now)
        self._enqueue(*(events or self.world.events))
        self._update_next_due()

    def note_enabled(self, now: float) -> None:
        """Compute again when the next step is due, after a request that enabled the service for a scope at ``now``."""
        self._latest = max(self._latest, now)
        self._update_next_due()

    def _enqueue(self, *events: SimulatedEvent) -> None:
        """Schedule ``events`` and the events that depend on them; retire those that have ended."""
        # events that have lost their VMs have ended, too
        ended = [each for each in self.world.events if each.status == ENDED]
        events = tuple(dict.fromkeys((*events, *ended)))
        # a batch of a thousand events is examined once, not once for each event
        one_of = {self.world.batch_key(event): event for event in events}
        deciding = {key: self._deciding(event) for key, event in one_of.items()}
        for event in events:
            self._schedule(event, deciding[self.world.batch_key(event)])
        for each in self.world.waiting_for(*events):
            self._schedule(each, self._deciding(each))
        for key, event in one_of.items():
            if key is not None:
                self._enqueue_batch(key, event, deciding[key])
        for event in events:
            if event.status == ENDED:
                self.world.retire(event)

    def _enqueue_batch(self, key: BatchKey, event: SimulatedEvent, deciding: SimulatedEvent | None) -> None:
        """Schedule the approved events of the batch of ``event`` if another moment decides when they start."""
        decision = None if deciding is None else deciding.approved_at
        if self._decisions.get(key) == decision:
            return
        self._decisions[key] = decision
        for each in self.world.batch(event):
            # the others start at NotBefore, whatever happens to the batch
            if each.status == SCHEDULED and each.approved_at is not None:
                self._schedule(each, deciding)

    def _schedule(self, event: SimulatedEvent, deciding: SimulatedEvent | None) -> None:
        moment = self._next_step(event, deciding).moment
        if math.isinf(moment):
            self._due.pop(event.number, None)
        else:
            self._due[event.number] = (moment, event.number)

    def _next_step(self, event: SimulatedEvent, deciding: SimulatedEvent | None) -> ScheduledStep:
        """Return the next step of ``event``; ``deciding`` is the event for whose approval its batch waits, if any."""
        if event.status == ENDED:
            return NO_STEP
        if event.status == PLANNED:
            return ScheduledStep(event.appears_at, 0, "appear")
        if event.status == SCHEDULED and event.advises:
            leave = ScheduledStep(float(event.not_before), 2, "finish")
        elif event.status == SCHEDULED:
            # an event that is no longer a Terminate waits for none, but others had waited for it
            if deciding is None or (event.plan.batch is None and not event.is_terminate):
                deciding = event
            leave = ScheduledStep(_start_moment(event, deciding, self.world), 2, "start")
        else:
            leave = ScheduledStep(event.ends_at, 2, "finish")
        return min([leave, *event.pending], key=lambda due: (due.moment, due.rank))

    def _deciding(self, event: SimulatedEvent) -> SimulatedEvent | None:
        """Return the event that decides when the approved events of the batch start.

        That is one without an approval, else the one that was approved last.
        """
        latest, latest_approval = None, -math.inf
        for each in self.world.batch(event):
            if each.status == SCHEDULED:
                # of a thousand events without an approval one is examined
                approved_at = each.approved_at
                if approved_at is None:
                    return each
                if approved_at > latest_approval:
                    latest, latest_approval = each, approved_at
        return latest

    def apply_knobs(self, knobs: Knobs, now: float = -math.inf) -> None:
        """Replace the knobs; ``now`` as for reschedule."""
        self.world.set_knobs(knobs)
        self.reschedule(now=now)


def _start_moment(event: SimulatedEvent, deciding: SimulatedEvent, world: World) -> float:
    """Return when a Scheduled event starts: at NotBefore, or earlier if approved.

    Needed are the approval of the event, the release by the other tenants on the hardware (reference 2.2.3), and for
    a delete operation the approval of the event that decides (reference 2.2.8).
    """
    approved_at, decided_at = event.approved_at, deciding.approved_at
    if not world.knobs.approval_shortens or approved_at is None or decided_at is None:
        return float(event.not_before)
    approved = max(event.released_at, approved_at, decided_at)
    return min(approved + world.to_wall_seconds(world.knobs.start_delay), float(event.not_before))
