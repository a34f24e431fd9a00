# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API routes for events."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from aiohttp import web

from ..model import operations
from ..model.events import CONTROL_PLANE, SimulatedEvent
from ..model.occurrence import Occurrence
from ..model.world import UnknownEvent
from ..scenario.build import change_from, event_from
from ..scenario.cross_checks import change_problems, event_problems
from ..scenario.moment_checks import past_moments
from ..scenario.plans import Change
from ..scenario.warnings import event_warnings
from ..server.engine import Engine
from .request_body import BadRequest, json_object, problem_text, validate
from .state import event_state

OTHER_TENANTS = "other-tenants"


class EventRoutes:
    """Routes below /events, and /fail."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._generated = 0

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for aiohttp."""
        return [
            web.get("/events", self.show_all),
            web.post("/events", self.schedule),
            web.get("/events/{event}", self.show),
            web.post("/events/{event}/approve", self.approve),
            web.post("/events/{event}/cancel", self.cancel),
            web.post("/events/{event}/complete", self.complete),
            web.post("/events/{event}/change", self.change),
            web.post("/fail", self.fail),
        ]

    async def show_all(self, _request: web.Request) -> web.Response:
        """Return all events, ended ones first."""
        self._engine.settle()
        world = self._engine.world
        return web.json_response({"events": [event_state(each) for each in [*world.ended, *world.events]]})

    async def show(self, request: web.Request) -> web.Response:
        """Return one event."""
        self._engine.settle()
        return web.json_response(event_state(self._find(request)))

    async def schedule(self, request: web.Request) -> web.Response:
        """Add an event of the form that scenarios use; ``at`` counts from now, or is an absolute time.

        The member ``warnings`` of the answer lists what Azure does not send.
        """
        body = await json_object(request)
        groups, group_of = self._groups()
        now = self._engine.settle()
        validate(body, "event", chain(event_problems(body, groups, group_of), past_moments(body, "events", now)))
        plan = event_from(body, self._generate_name())
        self._require_unused_name(plan.name)
        if plan.after is not None:
            self._require_event(plan.after)
        event, occurrences = operations.schedule(self._engine.simulation, plan, now)
        return self._respond(event, occurrences, 201, {"warnings": self._warnings(body)})

    async def fail(self, request: web.Request) -> web.Response:
        """Add an event for failed hardware under ``vm`` or ``resources``."""
        body = await json_object(request, {"vm", "resources", "type", "name"})
        names = body.get("resources") or ([body["vm"]] if "vm" in body else [])
        kind = body.get("type")
        wanted: dict[str, Any] = {"resources": names, "starts": "hardware_failure", **({"type": kind} if kind else {})}
        groups, group_of = self._groups()
        validate(wanted, "event", event_problems(wanted, groups, group_of))
        name = str(body.get("name") or self._generate_name())
        self._require_unused_name(name)
        event, occurrences = operations.fail(self._engine.simulation, names, kind, name, self._engine.settle())
        return self._respond(event, occurrences, 201)

    async def approve(self, request: web.Request) -> web.Response:
        """Approve or release an event.

        ``as`` is the control plane (default), a VM, or the other tenants, who release the event.
        """
        approver = (await json_object(request, {"as"})).get("as", CONTROL_PLANE)
        now, world, event = self._engine.settle(), self._engine.world, self._find(request)
        if approver == CONTROL_PLANE:
            return self._respond(
                event, operations.change(self._engine.simulation, event, Change(0, action="approve"), now)
            )
        if approver == OTHER_TENANTS:
            return self._respond(
                event, operations.change(self._engine.simulation, event, Change(0, action="release"), now)
            )
        vm = world.vms.get(str(approver))
        if vm is None:
            raise BadRequest(
                f"as: there is no approver {approver!r}; give {CONTROL_PLANE}, {OTHER_TENANTS} or the name of a VM"
            )
        if event not in world.events_visible_to(world.scope_for(vm)):
            raise operations.InvalidState(f"event {event.name}: {approver} does not see it")
        return self._respond(event, operations.approve(self._engine.simulation, [event], vm.name, now))

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a Scheduled event."""
        return self._change(self._find(request), Change(0, action="cancel"))

    async def complete(self, request: web.Request) -> web.Response:
        """End an event now."""
        return self._change(self._find(request), Change(0, action="complete"))

    async def change(self, request: web.Request) -> web.Response:
        """Apply a change of the form that scenarios use, without ``after``."""
        body = await json_object(request)
        validate(body, "change", change_problems(body))
        if "after" in body or "after_start" in body:
            raise BadRequest("after, after_start: not allowed; the control API applies a change immediately")
        event = self._find(request)
        if "resources" in body:
            groups, group_of = self._groups()
            wanted = {"type": event.content.type, "resources": [event.content.resources[0]], "changes": [body]}
            validate(wanted, "event", event_problems(wanted, groups, group_of))
        return self._change(event, change_from(body))

    def _change(self, event: SimulatedEvent, requested: Change) -> web.Response:
        now = self._engine.settle()
        return self._respond(event, operations.change(self._engine.simulation, event, requested, now))

    def _respond(
        self,
        event: SimulatedEvent,
        occurrences: list[Occurrence],
        status: int = 200,
        more: Mapping[str, Any] | None = None,
    ) -> web.Response:
        self._engine.record(occurrences)
        self._engine.wake_ticker()
        return web.json_response({**event_state(event), **(more or {})}, status=status)

    def _find(self, request: web.Request) -> SimulatedEvent:
        return self._engine.world.find(request.match_info["event"])

    def _generate_name(self) -> str:
        self._generated += 1
        return f"control{self._generated}"

    def _require_unused_name(self, name: str) -> None:
        try:
            self._engine.world.find(name)
        except UnknownEvent:
            return
        raise BadRequest(f"name: there is an event {name} already")

    def _require_event(self, name: str) -> None:
        try:
            self._engine.world.find(name)
        except UnknownEvent:
            raise BadRequest(f"after: there is no event {name}") from None

    def _warnings(self, body: Mapping[str, Any]) -> list[str]:
        world = self._engine.world
        vms = {vm.name: {"placement_group": vm.placement_group} for vm in world.vms.values()}
        data = {"groups": {"all": {"vms": vms}}, "events": [body]}
        return [problem_text(path[2:], text) for path, text in event_warnings(data, world.knobs)]

    def _groups(self) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        world = self._engine.world
        return (
            {group.name: {"kind": group.kind} for group in world.groups.values()},
            {vm.name: vm.group for vm in world.vms.values()},
        )
