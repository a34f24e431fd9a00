# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The control API: JSON over HTTP on an address of its own."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Callable

from aiohttp import web

from .. import __version__
from ..keys import Found, Problems, key
from ..model.simulation import InvalidState
from ..model.transitions import step_incarnation
from ..model.world import AmbiguousEvent, UnknownEvent
from ..scenario.files import schema as scenario_schema
from ..scenario.knobs import changed_knobs, describe_knobs
from ..scenario.plans import IncarnationStep
from ..server.activity_log import KINDS
from ..server.arm_handler import arm_route
from ..server.engine import Engine
from ..server.listeners import Listeners
from ..suggestions import suggestion, unknown
from ..times import iso
from ..value_types import DURATION, TEXT, integer, one_of
from . import MARK
from .access import Access
from .events import EventRoutes
from .faults import FaultRoutes
from .page.routes import PAGE_ROUTES
from .request_body import BadRequest, json_object, read_body, read_query, require_none
from .state import run_data, state

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_NUMBER = integer(0)


def control_app(engine: Engine, listeners: Listeners, access: Access) -> web.Application:
    """Return the application of the control API."""

    @web.middleware
    async def settled(request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Run the steps that are due before, and apply a change of refusals after: the caller relies on both."""
        engine.settle()
        answer = await handler(request)
        if request.method != "GET":
            await listeners.apply_refusals()
        return answer

    simulator, events, faults = SimulatorRoutes(engine, listeners), EventRoutes(engine), FaultRoutes(engine)
    app = web.Application(middlewares=[_errors_as_json, access.middleware, settled])
    app.on_response_prepare.append(_mark)
    app.add_routes(
        [
            web.get("/health", simulator.health),
            web.get("/state", simulator.state),
            web.get("/log", simulator.log),
            web.get("/requests", simulator.requests),
            web.get("/schema", simulator.schema),
            web.get("/knobs", simulator.knobs),
            web.post("/knobs", simulator.set_knobs),
            web.post("/advance", simulator.advance),
            web.post("/incarnation", simulator.incarnation),
            web.post("/disable", simulator.disable),
            web.get("/events", events.show_all),
            web.post("/events", events.schedule),
            web.get("/events/{event}", events.show),
            web.post("/events/{event}/approve", events.approve),
            web.post("/events/{event}/cancel", events.cancel),
            web.post("/events/{event}/complete", events.complete),
            web.post("/events/{event}/change", events.change),
            web.post("/fail", events.fail),
            web.post("/notes", events.note),
            web.get("/faults", faults.show_all),
            web.post("/faults", faults.inject),
            web.delete("/faults", faults.clear),
            web.delete("/faults/{number}", faults.clear),
            web.get("/fault-kinds", faults.kinds),
            arm_route(engine, access.token),
            *PAGE_ROUTES,
        ]
    )
    return app


async def _mark(_request: web.Request, answer: web.StreamResponse) -> None:
    answer.headers[MARK] = __version__


@web.middleware
async def _errors_as_json(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as error:
        return _error(400, str(error))
    except AmbiguousEvent as error:
        return _error(400, f"event: {error}")
    except RecursionError:
        # json.loads() reads what json.dumps() refuses
        return _error(400, "the body is nested too deeply")
    except UnknownEvent as error:
        return _error(404, f"there is no event {error}; the verb events (GET /events) lists the events")
    except InvalidState as error:
        return _error(409, str(error))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        answer = _error(error.status, f"{error.reason}: {request.method} {request.path}")
        for name in ("Allow", "WWW-Authenticate"):
            if name in error.headers:
                answer.headers[name] = error.headers[name]
        return answer


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)


@dataclass(frozen=True)
class Advance:
    """The body of /advance."""

    seconds: float = key(DURATION, "simulated time to move forward")


@dataclass(frozen=True)
class OfGroup:
    """The body of /disable."""

    group: str = key(TEXT, "the group")


@dataclass(frozen=True)
class StateQuery:
    """The query of /state; without a key the answer has no log."""

    after_line: int | None = key(_NUMBER, "lines after this one", default=None)
    after_request: int | None = key(_NUMBER, "requests after this one", default=None)


@dataclass(frozen=True)
class LogQuery:
    """The query of /log."""

    after: int = key(_NUMBER, "lines after this one", default=0)
    what: str | None = key(one_of(*KINDS), "lines of this kind", default=None)


@dataclass(frozen=True)
class RequestsQuery:
    """The query of /requests."""

    after: int = key(_NUMBER, "requests after this one", default=0)
    vm: str | None = key(TEXT, "requests of this VM; empty: of unknown clients", default=None)


class SimulatorRoutes:
    """Routes for the simulator as a whole."""

    def __init__(self, engine: Engine, listeners: Listeners) -> None:
        self._engine = engine
        self._listeners = listeners

    async def health(self, _request: web.Request) -> web.Response:
        """Answer that the simulator runs."""
        return web.json_response({"ok": True, "title": self._engine.scenario.title, "vms": len(self._engine.world.vms)})

    async def state(self, request: web.Request) -> web.Response:
        """Return clock, VMs, scopes, events and faults; query: ``after_line``, ``after_request`` for the log, too."""
        query = read_query(request, StateQuery)
        endpoints = self._listeners.endpoints()
        if query == StateQuery():
            return web.json_response(state(self._engine, endpoints))
        return web.json_response(run_data(self._engine, endpoints, query.after_line or 0, query.after_request or 0))

    async def log(self, request: web.Request) -> web.Response:
        """Return lines of the log; query: ``after`` (line number), ``what``."""
        query, log = read_query(request, LogQuery), self._engine.activity_log
        lines = log.lines_after(query.after, query.what)
        return web.json_response({"lines": lines, "dropped": log.dropped()["lines"]})

    async def requests(self, request: web.Request) -> web.Response:
        """Return recent requests to IMDS and counts; query: ``after`` (request number), ``vm``."""
        vms = self._engine.world.vms

        def problems(query: RequestsQuery) -> Found:
            if query.vm and query.vm not in vms:
                yield ("vm",), unknown("VM", query.vm, vms)

        query, log = read_query(request, RequestsQuery, problems), self._engine.activity_log
        found = [each for each in log.requests_after(query.after) if query.vm in (None, each.vm)]
        recent = [{**each._asdict(), "time": iso(each.moment)} for each in found]
        return web.json_response(
            {"requests": recent, "counts": log.request_counts(), "dropped": log.dropped()["requests"]}
        )

    async def schema(self, _request: web.Request) -> web.Response:
        """Return the JSON Schema of scenarios, which has the keys of events and faults."""
        return web.json_response(scenario_schema())

    async def knobs(self, request: web.Request) -> web.Response:
        """Return the knobs with their values; query: ``name``, once for each knob to return."""
        found = describe_knobs(self._engine.world.knobs)
        names = request.query.getall("name", list(found))
        for name in names:
            if name not in found:
                raise BadRequest(f"there is no knob {name}{suggestion(name, found) or '; --list-knobs lists them'}")
        return web.json_response({name: found[name] for name in names})

    async def set_knobs(self, request: web.Request) -> web.Response:
        """Set the knobs of the body and return all knobs."""
        engine = self._engine
        body, problems = await json_object(request), Problems()
        changed = changed_knobs(engine.world.knobs, body, (), problems)
        require_none(problems)
        engine.simulation.apply_knobs(changed, engine.settle())
        # users without the token read the log on the terminal and in reports
        shown = {**body, "arm_token": "(secret)"} if "arm_token" in body else body
        engine.log("knobs", **{"set": json.dumps(shown)})
        engine.wake_ticker()
        return web.json_response(describe_knobs(changed))

    async def advance(self, request: web.Request) -> web.Response:
        """Move the clock forward by ``seconds``, a simulated duration."""
        seconds = (await read_body(request, Advance)).seconds
        now = self._engine.advance(seconds)
        self._engine.log("advanced", seconds=seconds)
        return web.json_response({"unix": now})

    async def incarnation(self, request: web.Request) -> web.Response:
        """Change the DocumentIncarnation of ``group``: set it ``to`` a value, or ``add`` a number."""
        engine, step = self._engine, await read_body(request, IncarnationStep, self._problems)
        occurrences = step_incarnation(engine.world, step, engine.settle())
        engine.record(occurrences)
        return web.json_response({"incarnation": occurrences[0].detail["incarnation"]})

    async def disable(self, request: web.Request) -> web.Response:
        """Disable the service for ``group``, as 24 h without requests do (docs/reference/scheduled-events.md 4.1.3)."""
        engine, group = self._engine, (await read_body(request, OfGroup, self._problems)).group
        used = engine.world.scopes.values()
        scopes = [scope for scope in used if scope.group == group and scope.enabled_at is not None]
        for scope in scopes:
            scope.forced_idle = True
        engine.log("disabled", group=group)
        return web.json_response({"scopes": [scope.key for scope in scopes]})

    def _problems(self, body: OfGroup | IncarnationStep) -> Found:
        groups = self._engine.world.groups
        if isinstance(body, IncarnationStep) and body.at:
            yield ("at",), "not allowed; the control API changes the incarnation immediately"
        if body.group not in groups:
            yield ("group",), unknown("group", body.group, groups)
