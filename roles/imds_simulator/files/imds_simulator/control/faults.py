# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API routes for faults."""

from __future__ import annotations

from aiohttp import web

from ..faults.kinds import FAULT, GROUPS
from ..keys import Problems
from ..scenario.checks import fault_problems, past_moments
from ..server.engine import Engine
from .request_body import BadRequest, json_object, require_none
from .state import fault_state

# bounds the length of a line of the log
_MAX_LOGGED = 100


class FaultRoutes:
    """Routes below /faults, and /fault-kinds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def show_all(self, _request: web.Request) -> web.Response:
        """Return the faults with their time windows and counts."""
        now = self._engine.settle()
        return web.json_response({"faults": [fault_state(each, now) for each in self._engine.faults.all(now)]})

    async def kinds(self, _request: web.Request) -> web.Response:
        """Return the kinds of faults with their options."""
        return web.json_response(
            {
                name: {"group": group, "meaning": kind.meaning, "options": list(kind.options)}
                for group, kinds in GROUPS.items()
                for name, kind in kinds.items()
            }
        )

    async def inject(self, request: web.Request) -> web.Response:
        """Add a fault of the form that scenarios use; ``from``, ``to`` and ``for`` count from now."""
        engine, now, problems = self._engine, self._engine.settle(), Problems()
        fault = FAULT.read(await json_object(request), (), problems)
        if fault is not None:
            routes = {each.route for each in engine.scenario.answers}
            problems.check(fault_problems(fault, engine.world.vms, routes))
            problems.check(past_moments(now, fault.window.times()))
        require_none(problems)
        active = engine.inject(fault, now)
        engine.log("fault-injected", fault=active.number, kind=fault.kind)
        return web.json_response(fault_state(active, now), status=201)

    async def clear(self, request: web.Request) -> web.Response:
        """Remove all faults, or the one whose number the path has."""
        engine, now, number = self._engine, self._engine.clock.now(), request.match_info.get("number")
        removed = [each for each in engine.faults.all(now) if number in (None, str(each.number))]
        if number is not None and not removed:
            raise BadRequest(f"there is no fault {number}; the verb fault list (GET /faults) lists the faults")
        engine.faults.clear(removed, now)
        shown = [fault_state(each, now) for each in removed[:_MAX_LOGGED]]
        keys = ("number", "kind", "vms", "from", "to", "exhausted")
        engine.log("faults-cleared", count=len(removed), faults=[{key: each[key] for key in keys} for each in shown])
        engine.wake_ticker()
        return web.json_response({"cleared": len(removed)})
