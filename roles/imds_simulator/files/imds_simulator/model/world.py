# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The state of the simulated service: groups, scopes and events (docs/reference/scheduled-events.md 2, 3)."""

from __future__ import annotations

import math
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from ..scenario.groups import Group, Vm
from ..scenario.knobs import Knobs
from ..scenario.plans import EventPlan, Scenario
from ..times import Moment, When
from .events import SimulatedEvent, fields_of

# bounds the memory of a simulation that runs for weeks
_MAX_ENDED = 1000
# characters of an id that stand for the whole
_SHORTEST_ID = 4

# the name of a group and of a batch in it; None: the events of the group without a batch
BatchKey = tuple[str, Optional[str]]


def new_event_id() -> str:
    """Return a new upper-case GUID (reference 1.4.3)."""
    return str(uuid.uuid4()).upper()


class UnknownEvent(LookupError):
    """No event has that name or id."""


class AmbiguousEvent(LookupError):
    """The ids of several events begin so."""


@dataclass(eq=False)
class Scope:
    """The state of clients that share a document: whether the service is enabled for them, and DocumentIncarnation.

    ``revision`` counts visible changes. Unlike the incarnation it never decreases.
    """

    key: str
    group: str
    incarnation: int
    revision: int = 0
    enabled_at: float | None = None
    hidden_until: float = math.inf
    last_request: float | None = None
    forced_idle: bool = False

    @property
    def events_hidden(self) -> bool:
        """True while the events are hidden, after the service was enabled (reference 4.1.2)."""
        return self.hidden_until < math.inf

    def count_change(self, step: int) -> None:
        """Count one visible change (reference 2.5.1)."""
        # a step may be negative (reference 2.5.6)
        self.incarnation = max(0, self.incarnation + step)
        self.revision += 1


class World:
    """The groups of a scenario with their scopes, and its events that were added.

    ``speed``: the simulated seconds that pass in one second of the simulator's clock. ``epoch`` is the moment of
    simulated time 0. It is None until the first request if the scenario begins with the first request.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.groups: Mapping[str, Group] = {group.name: group for group in scenario.groups}
        self.vms: Mapping[str, Vm] = {vm.name: vm for group in scenario.groups for vm in group.vms}
        self.knobs = scenario.knobs
        self.speed = scenario.speed
        self.epoch: float | None = None
        # the events that have not ended, oldest first
        self.events: list[SimulatedEvent] = []
        self.ended: deque[SimulatedEvent] = deque(maxlen=_MAX_ENDED)
        # the names of VMs that Azure has deleted
        self.removed: set[str] = set()
        # key -> scope, of those that were used until now
        self.scopes: dict[str, Scope] = {}
        self._scope_of: dict[str, Scope] = {}

    # -- time

    def moment_of(self, when: When, base: float) -> float:
        """Return ``when`` on the simulator's clock; simulated seconds count from ``base``."""
        if isinstance(when, Moment):
            return when.unix
        return base + self.to_wall_seconds(when)

    def to_wall_seconds(self, simulated: float) -> float:
        """Return how many seconds of the simulator's clock ``simulated`` seconds take."""
        return simulated / self.speed

    # -- events

    def add(self, plan: EventPlan, base: float) -> SimulatedEvent:
        """Add a planned event.

        ``plan.at`` counts from ``base``, or from the end of the event ``plan.after``.
        """
        group = self.vms[plan.resources[0]].group
        event = SimulatedEvent(plan, group, plan.id or new_event_id(), fields_of(plan, self.knobs))
        if plan.after is None:
            event.appears_at = max(base, self.moment_of(plan.at, base))
        else:
            ends = [each.gone_at for each in self.ended if each.name == plan.after and each.gone_at is not None]
            if ends:
                event.appears_at = max(base, self.moment_of(plan.at, ends[-1]))
        self.events.append(event)
        return event

    def retire(self, event: SimulatedEvent) -> None:
        """Move an event that has ended from ``events`` to ``ended``."""
        self.events.remove(event)
        self.ended.append(event)
        # no VM receives it any more
        event.seen_by.clear()

    def batch_key(self, event: SimulatedEvent) -> BatchKey | None:
        """Return the key of the events for whose approval ``event`` waits; None if it waits for its own alone.

        These are the events of its batch. Without a batch these are the Terminate events of its scale set
        (reference 2.2.8).
        """
        if event.plan.batch is not None:
            return event.group, event.plan.batch
        waits = event.content.type == "Terminate" and self.groups[event.group].kind == "scale_set"
        return (event.group, None) if waits else None

    def has_event(self, name: str) -> bool:
        """Return True if an event has that name."""
        return any(event.name == name for event in (*self.events, *self.ended))

    def find(self, wanted: str) -> SimulatedEvent:
        """Return the event with that name or id, else the one whose id begins so; those that have ended come last.

        Raises:
            UnknownEvent: there is no such event.
            AmbiguousEvent: the ids of several events begin so.
        """
        events, id_ = [*self.events, *reversed(self.ended)], wanted.upper()
        found = [event for event in events if event.name == wanted or event.id == id_][:1]
        if not found and len(wanted) >= _SHORTEST_ID:
            found = [event for event in events if event.id.startswith(id_)]
        if not found:
            raise UnknownEvent(wanted)
        if len(found) > 1:
            names = ", ".join(event.name for event in found)
            raise AmbiguousEvent(f"the EventIds of {names} begin with {wanted}; give the name, or the whole EventId")
        return found[0]

    # -- scopes

    def record_request(self, scope: Scope, now: float) -> bool:
        """Record a request for the document of ``scope``; return True if it enables the service (reference 4.1.1)."""
        expired = self._has_been_idle(scope, now)
        scope.last_request = now
        if scope.enabled_at is not None and not expired:
            return False
        scope.forced_idle = False
        if expired and self.knobs.incarnation_reset:
            scope.incarnation = self.groups[scope.group].incarnation
        scope.enabled_at = now + self.to_wall_seconds(self.knobs.enable_delay)
        events_delay = self.to_wall_seconds(self.knobs.events_delay)
        scope.hidden_until = scope.enabled_at + events_delay if events_delay else math.inf
        scope.revision += 1
        return True

    def is_enabled(self, scope: Scope, now: float) -> bool:
        """Return True if the service is enabled for ``scope`` at ``now``."""
        return scope.enabled_at is not None and scope.enabled_at <= now and not self._has_been_idle(scope, now)

    def _has_been_idle(self, scope: Scope, now: float) -> bool:
        """Return True if the time without requests was long enough to disable the service (reference 4.1.3)."""
        if scope.forced_idle:
            return True
        if scope.last_request is None or not self.knobs.idle_disable:
            return False
        return now - scope.last_request > self.to_wall_seconds(self.knobs.idle_disable)

    def scope_for(self, vm: Vm) -> Scope:
        """Return the scope whose document ``vm`` sees."""
        scope = self._scope_of.get(vm.name)
        if scope is None:
            group, key = self.groups[vm.group], self._scope_key(vm)
            scope = self.scopes.setdefault(key, Scope(key, group.name, group.incarnation))
            self._scope_of[vm.name] = scope
        return scope

    def _scope_key(self, vm: Vm) -> str:
        """Return the key of the scope of ``vm``; VMs with equal keys share a document (reference 3.1)."""
        group = self.groups[vm.group]
        if group.own_events_only:
            return f"{group.name}/{vm.name}"
        key = group.name
        if self.knobs.placement_group_split and vm.placement_group:
            key += f"/placement group {vm.placement_group}"
        if self.knobs.zone_split and vm.zone:
            key += f"/zone {vm.zone}"
        return key

    def scopes_showing(self, event: SimulatedEvent) -> set[Scope]:
        """Return the scopes whose documents list the event when it is visible (reference 3.1)."""
        return {self.scope_for(self.vms[name]) for name in event.content.resources}

    def events_visible_to(self, scope: Scope) -> list[SimulatedEvent]:
        """Return the events in the document of ``scope``, oldest first."""
        if scope.events_hidden:
            return []
        return [
            event
            for event in self.events
            if event.group == scope.group and event.visible and scope in self.scopes_showing(event)
        ]

    def approvable(self, vm: Vm, ids: Sequence[str]) -> dict[str, list[SimulatedEvent]]:
        """Return for each id the events that ``vm`` may approve: those of its scope (reference 1.5, 3.1.1)."""
        by_id: dict[str, list[SimulatedEvent]] = {}
        for event in self.events_visible_to(self.scope_for(vm)):
            by_id.setdefault(event.id.upper(), []).append(event)
        return {each: by_id.get(each.upper(), []) for each in ids}

    def reveal_events(self, scope: Scope) -> None:
        """Show the events that were hidden, which is a change if there are any."""
        scope.hidden_until = math.inf
        scope.count_change(self.knobs.incarnation_step if self.events_visible_to(scope) else 0)

    def bump_incarnation(self, scopes: Iterable[Scope]) -> None:
        """Raise the incarnation of ``scopes`` for one visible change."""
        for scope in scopes:
            # a change of hidden events is not visible in the document
            scope.count_change(0 if scope.events_hidden else self.knobs.incarnation_step)

    def set_knobs(self, knobs: Knobs) -> None:
        """Replace the knobs."""
        before, self.knobs = self.knobs, knobs
        splits = [(each.zone_split, each.placement_group_split) for each in (before, knobs)]
        scopes_change = splits[0] != splits[1]
        if scopes_change:
            self._scope_of.clear()
        for scope in self.scopes.values():
            scope.count_change(knobs.incarnation_step if scopes_change else 0)
