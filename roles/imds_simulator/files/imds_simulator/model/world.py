# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The state of the simulated service: groups, their scopes, their events (docs/reference/scheduled-events.md 2 and 3), and questions about it."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable

from ..scenario.groups import Group, Vm, scope_key
from ..scenario.knobs import Knobs
from ..scenario.plans import EventPlan
from .events import SimulatedEvent, fields_of
from .rules import Rules
from .scopes import Scope

# events that are over stay listed up to this many, so that a week of events does not eat memory
_KEEP_GONE = 1000


def new_event_id() -> str:
    """An upper-case GUID, unique over restarts (reference 1.4.3, T73)."""
    return str(uuid.uuid4()).upper()


class UnknownEvent(LookupError):
    """No event of that name or id."""


class World:
    """All groups with their scopes and events.

    ``epoch`` is the moment of simulated time 0, None
    until the first request when the scenario begins with that.
    """

    def __init__(self, groups: Sequence[Group], rules: Rules, *, new_id: Callable[[], str] = new_event_id) -> None:
        self.groups: Mapping[str, Group] = {group.name: group for group in groups}
        self.vms: Mapping[str, Vm] = {vm.name: vm for group in groups for vm in group.vms}
        self.rules = rules
        self.epoch: float | None = None
        self.live: dict[int, SimulatedEvent] = {}
        self.gone: deque[SimulatedEvent] = deque(maxlen=_KEEP_GONE)
        self._new_id = new_id
        self._scopes: dict[str, Scope] = {}
        self._scope_of: dict[str, Scope] = {}
        self._added = 0
        self._batches: dict[tuple[str, str], list[SimulatedEvent]] = {}
        self._followers: dict[str, list[SimulatedEvent]] = {}

    # -- rules and time

    @property
    def knobs(self) -> Knobs:
        """The knobs that hold at present."""
        return self.rules.knobs

    def to_wall_seconds(self, simulated: float) -> float:
        """How long ``simulated`` seconds take on the clock."""
        return self.rules.to_wall_seconds(simulated)

    # -- events

    @property
    def events(self) -> list[SimulatedEvent]:
        """The events that are not over, oldest first."""
        return list(self.live.values())

    def add(self, plan: EventPlan, base: float) -> SimulatedEvent:
        """Put an event into the future: ``plan.at`` counts from ``base``, or from the end of ``plan.after``."""
        self._added += 1
        event = SimulatedEvent(
            self._added,
            plan,
            self.vms[plan.resources[0]].group,
            plan.id or self._new_id(),
            fields_of(plan, self.knobs),
        )
        if plan.after is None:
            event.appears_at = base + self.to_wall_seconds(plan.at)
        else:
            self._followers.setdefault(plan.after, []).append(event)
            ended = [each.gone_at for each in self.gone if each.name == plan.after and each.gone_at is not None]
            if ended:
                event.appears_at = max(base, ended[-1] + self.to_wall_seconds(plan.at))
        if plan.batch:
            self._batches.setdefault((event.group, plan.batch), []).append(event)
        self.live[event.number] = event
        return event

    def retire(self, event: SimulatedEvent) -> None:
        """Move an event that is over to those that are gone."""
        if self.live.pop(event.number, None) is not None:
            self.gone.append(event)
            for friends in (self.batch(event), self._followers.get(event.plan.after or "", [])):
                if event in friends:
                    friends.remove(event)

    def batch(self, event: SimulatedEvent) -> list[SimulatedEvent]:
        """The events that wait for each other's approval, this one among them; empty for an event without a batch."""
        return self._batches[event.group, event.plan.batch] if event.plan.batch else []

    def waiting_for(self, event: SimulatedEvent) -> list[SimulatedEvent]:
        """The events that wait for the end of ``event``."""
        return self._followers.get(event.name, [])

    def find(self, name_or_id: str) -> SimulatedEvent:
        """The event of that name or id, living ones first; raises UnknownEvent."""
        for event in self.events + list(reversed(self.gone)):
            if event.name == name_or_id or event.id.upper() == name_or_id.upper():
                return event
        raise UnknownEvent(name_or_id)

    # -- scopes

    def scopes(self) -> list[Scope]:
        return list(self._scopes.values())

    def scope_for(self, vm: Vm) -> Scope:
        """The scope whose document ``vm`` sees."""
        scope = self._scope_of.get(vm.name)
        if scope is None:
            group = self.groups[vm.group]
            key = scope_key(group, vm, self.knobs.zone_split)
            first = self.knobs.incarnation_start if group.incarnation is None else group.incarnation
            scope = self._scopes.setdefault(key, Scope(key, group.name, first, first))
            self._scope_of[vm.name] = scope
        return scope

    def scopes_showing(self, event: SimulatedEvent) -> list[Scope]:
        """Every scope in whose document the event is, or would be, listed (reference 3.1)."""
        group = self.groups[event.group]
        whole = not group.own_events_only and not self.knobs.zone_split
        vms = group.vms[:1] if whole else [self.vms[name] for name in event.content.resources]
        return list({scope.key: scope for scope in map(self.scope_for, vms)}.values())

    def events_visible_to(self, scope: Scope) -> list[SimulatedEvent]:
        """The events in the document of ``scope``, oldest first."""
        if scope.events_hidden:
            return []
        return [
            event
            for event in self.events
            if event.group == scope.group and event.visible and scope in self.scopes_showing(event)
        ]

    def bump_incarnation(self, scopes: Iterable[Scope]) -> None:
        """Raise the incarnation of ``scopes`` for one visible change."""
        for scope in scopes:
            # what is withheld after enabling changes nothing that anybody sees
            scope.changed(0 if scope.events_hidden else self.knobs.incarnation_step)

    def hidden_scopes(self) -> list[Scope]:
        """The scopes whose events are withheld."""
        return [scope for scope in self._scopes.values() if scope.events_hidden]

    def use(self, knobs: Knobs) -> None:
        """Use other knobs from now on."""
        split = knobs.zone_split != self.knobs.zone_split
        if split:
            self._scope_of.clear()
        self.rules = self.rules._replace(knobs=knobs)
        for scope in self._scopes.values():
            scope.changed(knobs.incarnation_step if split else 0)
