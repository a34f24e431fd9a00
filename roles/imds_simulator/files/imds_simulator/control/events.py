# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API routes for events."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import count
from typing import Any

from aiohttp import web

from ..keys import Found, key, problem_text
from ..model.events import ARM, CONTROL_PLANE, Occurrence, SimulatedEvent
from ..model.simulation import InvalidState
from ..scenario.checks import event_problems, moved_problems, past_moments
from ..scenario.plans import HARDWARE_FAILURE, Change, EventPlan
from ..scenario.warnings import event_warnings
from ..server.engine import Engine
from ..suggestions import unknown
from ..value_types import TEXT, text
from .request_body import BadRequest, json_object, read_body, read_value
from .state import event_state

OTHER_TENANTS = "other-tenants"
_MAX_NOTE = 200


@dataclass(frozen=True)
class Approval:
    """The body of /approve."""

    approver: str = key(TEXT, "control-plane, other-tenants, arm or a VM", default=CONTROL_PLANE, name="as")


def _note(value: str) -> str:
    if not value.isprintable() or not 0 < len(value) <= _MAX_NOTE:
        raise ValueError(f"not a text of 1 to {_MAX_NOTE} printable characters")
    return value


@dataclass(frozen=True)
class Note:
    """The body of /notes."""

    vm: str = key(TEXT, "the VM", default="", required=True)
    what: str = key(text(parse=_note), "what it did", default="", required=True)
    event: str | None = key(TEXT, "the event", default=None)


class EventRoutes:
    """Routes below /events, /fail and /notes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._numbers = count(1)

    async def show_all(self, _request: web.Request) -> web.Response:
        """Return all events, ended ones first."""
        world = self._engine.world
        return web.json_response({"events": [self._state(each) for each in [*world.ended, *world.events]]})

    async def show(self, request: web.Request) -> web.Response:
        """Return one event."""
        return web.json_response(self._state(self._find(request)))

    async def schedule(self, request: web.Request) -> web.Response:
        """Add an event of the form that scenarios use; ``at`` counts from now, or is an absolute time.

        The member ``warnings`` of the answer lists what Azure does not send.
        """
        plan = await read_body(request, EventPlan, self._problems)
        world = self._engine.world
        warnings = [problem_text(path, text) for path, text in event_warnings(plan, world.vms, world.knobs)]
        return self._schedule(plan, warnings=warnings)

    async def fail(self, request: web.Request) -> web.Response:
        """Add a Started event for failed hardware under ``vm`` or ``resources`` (reference 2.1 transition 4)."""
        body = await json_object(request)
        vm = body.pop("vm", None)
        if vm is not None and body.setdefault("resources", [vm]) != [vm]:
            raise BadRequest("vm: give either vm or resources, not both")
        if body.setdefault("starts", HARDWARE_FAILURE) != HARDWARE_FAILURE:
            raise BadRequest(f"starts: is {HARDWARE_FAILURE} here; POST /events has the other values")
        return self._schedule(read_value(EventPlan, body, self._problems))

    def _problems(self, plan: EventPlan) -> Found:
        world, now = self._engine.world, self._engine.settle()
        yield from event_problems(plan, world.groups, world.vms)
        yield from past_moments(now, {("at",): plan.at})
        if world.has_event(plan.name):
            ended = ", which has ended" if any(each.name == plan.name for each in world.ended) else ""
            yield ("name",), f"there is an event {plan.name} already{ended}; choose another name"
        if plan.after is not None and not world.has_event(plan.after):
            yield ("after",), f"there is no event {plan.after}"

    def _schedule(self, plan: EventPlan, **more: Any) -> web.Response:
        generated = (f"control{number}" for number in self._numbers)
        name = plan.name or next(each for each in generated if not self._engine.world.has_event(each))
        named = dataclasses.replace(plan, name=name)
        event, occurrences = self._engine.simulation.schedule(named, self._engine.settle())
        return self._respond(event, occurrences, 201, **more)

    async def approve(self, request: web.Request) -> web.Response:
        """Approve or release an event.

        ``as`` is the control plane (default), Azure Resource Manager, a VM, or the other tenants, who release it.
        """
        approver = (await read_body(request, Approval)).approver
        now, world, event = self._engine.settle(), self._engine.world, self._find(request)
        if approver == CONTROL_PLANE:
            return self._change(event, Change(action="approve"))
        if approver == OTHER_TENANTS:
            return self._change(event, Change(action="release"))
        vm = world.vms.get(approver)
        if vm is None and approver != ARM:
            raise BadRequest(
                f"as: there is no approver {approver!r}; give {CONTROL_PLANE}, {OTHER_TENANTS}, {ARM} or the name "
                "of a VM"
            )
        if vm is not None:
            self._engine.simulation.check_present(event.name, [vm.name])
        self._engine.simulation.check_scheduled(event)
        if vm is not None and event not in world.events_visible_to(world.scope_for(vm)):
            raise InvalidState(f"event {event.name}: {approver} does not see it")
        return self._respond(event, self._engine.simulation.approve([event], approver, now))

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a Scheduled event."""
        return self._change(self._find(request), Change(action="cancel"))

    async def complete(self, request: web.Request) -> web.Response:
        """End an event now."""
        return self._change(self._find(request), Change(action="complete"))

    async def change(self, request: web.Request) -> web.Response:
        """Apply a change of the form that scenarios use, without ``after``."""
        event = self._find(request)

        def problems(change: Change) -> Found:
            for name in ("after", "after_start"):
                if getattr(change, name) is not None:
                    yield (name,), "not allowed; the control API applies a change immediately"
            world = self._engine.world
            names = change.resources or ()
            yield from moved_problems(event.content.resources, names, ("resources",), world.groups, world.vms)

        return self._change(event, await read_body(request, Change, problems))

    async def note(self, request: web.Request) -> web.Response:
        """Log ``what`` the VM ``vm`` did, for ``event`` if it is given."""
        world = self._engine.world

        def problems(note: Note) -> Found:
            if note.vm not in world.vms:
                yield ("vm",), unknown("VM", note.vm, world.vms)

        note = await read_body(request, Note, problems)
        event = "" if note.event is None else world.find(note.event).name
        self._engine.log("note", group=world.vms[note.vm].group, vm=note.vm, event=event, note=note.what)
        return web.json_response({"vm": note.vm, "what": note.what, "event": event or None}, status=201)

    def _change(self, event: SimulatedEvent, requested: Change) -> web.Response:
        now = self._engine.settle()
        return self._respond(event, self._engine.simulation.change(event, requested, now))

    def _respond(
        self, event: SimulatedEvent, occurrences: list[Occurrence], status: int = 200, **more: Any
    ) -> web.Response:
        self._engine.record(occurrences)
        return web.json_response({**self._state(event), **more}, status=status)

    def _state(self, event: SimulatedEvent) -> dict[str, Any]:
        return event_state(event, self._engine.resource_ids)

    def _find(self, request: web.Request) -> SimulatedEvent:
        return self._engine.world.find(request.match_info["event"])
