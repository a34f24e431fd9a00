# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The passing of time in a world, and requests of VMs, of the control plane and of the control API.

Pure except for its own state: every method takes the time as an argument (``now``, the simulator's
clock), and no method sleeps. ``advance_to(now)`` runs the steps that became due, in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..scenario.knobs import Knobs
from ..scenario.plans import Change, EventPlan, IncarnationStep, Scenario
from . import transitions
from .events import ENDED, PLANNED, SCHEDULED, STARTED, Occurrence, ScheduledStep, SimulatedEvent
from .world import BatchKey, World


class InvalidState(ValueError):
    """A request is not allowed in the state of the event, or of a VM."""


class Simulation:
    """The world of a scenario, whose events appear, start and end after ``begin``."""

    def __init__(self, scenario: Scenario) -> None:
        self.world = World(scenario)
        self._scenario = scenario
        self._steps: list[tuple[float, IncarnationStep]] = []
        # the events whose next step is due first, oldest first, and the moment of these steps
        self._due_events: list[SimulatedEvent] = []
        self._event_due = math.inf
        # the moment of the next step, or infinity; every request looks at it
        self.next_due = math.inf
        self._latest = -math.inf
        # batch -> when its last approval came; infinity while one is missing
        self._decided: dict[BatchKey | None, float] = {}

    def begin(self, epoch: float) -> None:
        """Begin the events of the scenario: ``epoch`` is simulated time 0 on the simulator's clock."""
        self.world.epoch = epoch
        for plan in self._scenario.events:
            self.world.add(plan, epoch)
        moments = [(max(epoch, self.world.moment_of(step.at, epoch)), step) for step in self._scenario.incarnations]
        self._steps = sorted(moments, key=lambda each: each[0])
        self._reschedule()

    def advance_to(self, now: float) -> list[Occurrence]:
        """Run the steps that are due until ``now``, each at its own moment, in order."""
        occurrences: list[Occurrence] = []
        while self.next_due <= now:
            # time never goes back: after an approval the start of an event may be due in the past
            self._latest = max(self._latest, self.next_due)
            occurrences += self._run_due_steps(self.next_due, self._latest)
            self._reschedule()
        self._latest = max(self._latest, now)
        return occurrences

    def _run_due_steps(self, due: float, moment: float) -> list[Occurrence]:
        """Run a change of the incarnation, the end of a time without events, or the steps of events due at ``due``."""
        if self._steps and self._steps[0][0] == due:
            return transitions.step_incarnation(self.world, self._steps.pop(0)[1], moment)
        for scope in self.world.scopes.values():
            if scope.hidden_until == due:
                self.world.reveal_events(scope)
                return []
        occurrences: list[Occurrence] = []
        for event in self._due_events:
            # an event before it may have changed it, and it may have further steps at this moment
            while (step := self._next_step(event)).moment <= due:
                occurrences += transitions.run_step(self.world, event, step, moment)
        return occurrences

    def _reschedule(self, now: float = -math.inf) -> None:
        """Find what is due next, after a change of events or knobs at ``now``.

        A step that the change makes due earlier is due now.
        """
        events = self.world.events
        self._decided = {}
        for event in events:
            key = self.world.batch_key(event) if event.status == SCHEDULED else None
            if key is not None:
                self._decided[key] = max(self._decided.get(key, event.approved_at), event.approved_at)
        # most of a long scenario is still planned
        moments = [each.appears_at if each.status == PLANNED else self._next_step(each).moment for each in events]
        self._event_due = min(moments, default=math.inf)
        self._due_events = [event for event, moment in zip(events, moments) if moment == self._event_due]
        self.note_enabled(now)

    def note_enabled(self, now: float) -> None:
        """Find what is due next, after a request that enabled the service for a scope at ``now``: no event changes."""
        self._latest = max(self._latest, now)
        moments = [scope.hidden_until for scope in self.world.scopes.values()]
        moments += [moment for moment, _step in self._steps[:1]]
        self.next_due = min([self._event_due, *moments])

    def _next_step(self, event: SimulatedEvent) -> ScheduledStep:
        if event.status == PLANNED:
            return ScheduledStep(event.appears_at, "appear")
        if event.status == SCHEDULED and event.advises:
            last = ScheduledStep(float(event.not_before), "finish")
        elif event.status == SCHEDULED:
            last = ScheduledStep(self._start_moment(event), "start")
        elif event.status == STARTED:
            last = ScheduledStep(event.ends_at, "finish")
        else:
            return ScheduledStep(math.inf, "never")
        # the first of those that are due at the same moment: the start or the end comes after changes
        return min([*event.pending, last], key=lambda due: due.moment)

    def _start_moment(self, event: SimulatedEvent) -> float:
        """Return when a Scheduled event starts: at NotBefore, or earlier if approved.

        Needed are its approval, the release by the other tenants on the hardware (reference 2.2.3), and the approvals
        of all events of its batch (reference 2.2.8).
        """
        knobs, not_before, approved = self.world.knobs, float(event.not_before), event.approved_at
        if not knobs.approval_shortens or math.isinf(approved):
            return not_before
        approved = max(event.released_at, approved, self._decided.get(self.world.batch_key(event), approved))
        return min(approved + self.world.to_wall_seconds(knobs.start_delay), not_before)

    # -- requests

    def approve(self, events: Sequence[SimulatedEvent], by: str, now: float) -> list[Occurrence]:
        """Approve ``events``; those that are Started, or approved by the same approver, stay unchanged."""
        occurrences = [each for event in events for each in transitions.approve(self.world, event, by, now)]
        self._reschedule(now)
        return occurrences

    def schedule(self, plan: EventPlan, now: float) -> tuple[SimulatedEvent, list[Occurrence]]:
        """Add an event that appears ``plan.at`` simulated seconds from now.

        Raises:
            InvalidState: a VM was deleted.
        """
        self.check_present(plan.name, plan.resources)
        event = self.world.add(plan, now)
        self._reschedule(now)
        return event, self.advance_to(now)

    def change(self, event: SimulatedEvent, requested: Change, now: float) -> list[Occurrence]:
        """Change an event now.

        Raises:
            InvalidState: the state of the event does not allow the change, or a VM was deleted.
        """
        self.check_present(event.name, requested.resources or ())
        if event.status == ENDED:
            raise InvalidState(f"event {event.name}: it has ended")
        if requested.action == "cancel" and event.status == STARTED:
            raise InvalidState(f"event {event.name}: a Started event cannot be cancelled (reference 2.1); use complete")
        if event.status == PLANNED and (
            requested.action == "impact" or requested.notice is not None or requested.status is not None
        ):
            raise InvalidState(
                f"event {event.name}: it has not appeared yet; its NotBefore, status and impact cannot be changed"
            )
        if requested.action in ("approve", "release"):
            self.check_scheduled(event)
        occurrences = transitions.change(self.world, event, requested, now)
        self._reschedule(now)
        return occurrences + self.advance_to(now)

    def check_scheduled(self, event: SimulatedEvent) -> None:
        """Raise InvalidState unless ``event`` is Scheduled."""
        if event.status != SCHEDULED:
            state = {PLANNED: "has not appeared yet", ENDED: "has ended"}.get(event.status, "is Started, not Scheduled")
            raise InvalidState(f"event {event.name}: it {state}")

    def check_present(self, event: str, vms: Sequence[str]) -> None:
        """Raise InvalidState, which names ``event``, if one of ``vms`` was deleted."""
        for vm in vms:
            if vm in self.world.removed:
                raise InvalidState(f"event {event}: Azure has deleted {vm}; name another VM")

    def apply_knobs(self, knobs: Knobs, now: float = -math.inf) -> None:
        """Replace the knobs. A step that this makes due earlier is due at ``now``."""
        self.world.set_knobs(knobs)
        self._reschedule(now)
