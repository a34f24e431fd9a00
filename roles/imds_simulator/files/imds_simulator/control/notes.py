# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API route for notes: steps of a VM that the simulator cannot observe."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from ..keys import Found, key
from ..server.engine import Engine
from ..suggestions import suggestion
from ..value_types import TEXT, text
from .request_body import read_body

_MAX_TEXT = 200


def _note(value: str) -> str:
    if not value.isprintable() or not 0 < len(value) <= _MAX_TEXT:
        raise ValueError(f"not a text of 1 to {_MAX_TEXT} printable characters")
    return value


@dataclass(frozen=True)
class Note:
    """The body of /notes."""

    vm: str = key(TEXT, "the VM", default="", required=True)
    what: str = key(text(parse=_note), "what it did", default="", required=True)
    event: str | None = key(TEXT, "the event", default=None)


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
        world = self._engine.world

        def problems(note: Note) -> Found:
            if note.vm not in world.vms:
                yield ("vm",), f"there is no VM {note.vm!r}{suggestion(note.vm, world.vms)}"

        note = await read_body(request, Note, problems)
        self._engine.settle()
        event = "" if note.event is None else world.find(note.event).name
        self._engine.log("note", group=world.vms[note.vm].group, vm=note.vm, event=event, note=note.what)
        return web.json_response({"vm": note.vm, "what": note.what, "event": event or None}, status=201)
