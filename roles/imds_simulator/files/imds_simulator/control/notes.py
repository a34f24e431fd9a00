# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API route for notes: steps of a VM that the simulator cannot observe."""

from __future__ import annotations

from aiohttp import web

from ..server.engine import Engine
from ..suggestions import suggestion
from .request_body import BadRequest, json_object

_MAX_TEXT = 200


class NoteRoutes:
    """The route /notes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for aiohttp."""
        return [web.post("/notes", self.add)]

    async def add(self, request: web.Request) -> web.Response:
        """Log ``what`` the VM ``vm`` did, for ``event`` if it is given.

        Raises:
            BadRequest: there is no such VM, or ``what`` is not a short text.
            UnknownEvent: there is no such event.
        """
        body = await json_object(request, {"vm", "what", "event"}, {"vm", "what"})
        self._engine.settle()
        world = self._engine.world
        name, text = body["vm"], body["what"]
        if not isinstance(name, str) or name not in world.vms:
            raise BadRequest(f"vm: there is no VM {name!r}{suggestion(str(name), world.vms)}")
        if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= _MAX_TEXT:
            raise BadRequest(f"what: not a text of 1 to {_MAX_TEXT} printable characters")
        event = "" if body.get("event") is None else world.find(str(body["event"])).name
        self._engine.log("note", group=world.vms[name].group, vm=name, event=event, note=text)
        return web.json_response({"vm": name, "what": text, "event": event or None}, status=201)
