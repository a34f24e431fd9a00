# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Answers a poll whose bytes were received before, at once.

A client that polls sends the same bytes each time. The regular path parses them, runs a task and builds
a response; that takes four times as long as the rest of the answer. Here the bytes are the key of the
request that aiohttp parsed from them. Only the usual poll is answered here: a valid GET for the document
by a known VM, without a fault and below the rate limit. The regular path answers everything else. Each
request is checked for that again, because faults, knobs and the state of the service may have changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus

from aiohttp import web
from aiohttp.http import HttpVersion11

from ..protocol.request_target import EVENTS, parse_target
from ..protocol.request_validation import Request, reject
from ..scenario.groups import Vm
from ..scenario.knobs import Knobs
from .answer_headers import SERVER, AnswerHeaders
from .engine import Engine

# requests whose bytes are kept, and the bytes of each
MAX_REQUESTS = 4096
MAX_BYTES = 2048


@dataclass
class _Known:
    """A request that was received before.

    ``is_valid`` holds for ``knobs``, which decide about it.
    """

    request: Request
    version: str
    knobs: Knobs | None = None
    is_valid: bool = False


class RepeatedRequests:
    """The requests that were received before, by their bytes."""

    def __init__(self, engine: Engine, headers: AnswerHeaders) -> None:
        self._engine = engine
        self._headers = headers
        self._known: dict[bytes, _Known] = {}
        # hashes of requests that were received once; most of those that differ each time end here
        self._once: set[int] = set()

    def remember(self, data: bytes, request: web.BaseRequest) -> None:
        """Remember, the second time, that aiohttp parsed ``request``, which has no body, from ``data``."""
        # the head of the answer depends on the version: with HTTP/1.0 it has Connection: keep-alive
        if request.method != "GET" or request.version != HttpVersion11 or len(data) > MAX_BYTES or data in self._known:
            return
        digest = hash(data)
        if digest not in self._once:
            if len(self._once) >= MAX_REQUESTS:
                self._once.clear()
            self._once.add(digest)
            return
        target = parse_target(request.raw_path)
        if target.route != EVENTS:
            return
        if len(self._known) >= MAX_REQUESTS:
            # those that are still repeated are back soon
            self._known.clear()
        self._known[data] = _Known(Request("GET", target, request.headers), target.version or "")

    def answer(self, data: bytes, vm: Vm, source: str) -> bytes | None:
        """Return the answer to the request ``data``, or None if the regular path has to answer it.

        Args:
            data: all bytes of a request.
            vm: the VM that sent it.
            source: its source address, for the log.
        """
        known = self._known.get(data)
        if known is None:
            return None
        engine = self._engine
        now = engine.settle()
        world = engine.world
        if engine.faults or world.epoch is None:
            return None
        knobs = world.knobs
        if known.knobs is not knobs:
            known.knobs, known.is_valid = knobs, reject(known.request, knobs) is None
        if not known.is_valid or not world.scope_for(vm).enabled(now, world.rules):
            return None
        reply = engine.service.events(known.request, vm)
        # the last check, because it counts the request
        if not engine.within_rate(vm, EVENTS):
            return None
        engine.register_request(vm, now)
        engine.note_views(vm, reply.events)
        engine.activity_log.add_request(now, vm.name, "GET", EVENTS, known.version, reply.status, "", source)
        before_date, after_id = _fixed_parts(reply.status, reply.content_type, reply.headers, len(reply.body))
        changing = f"{self._headers.date(now)}\r\nx-ms-request-id: {self._headers.request_id()}\r\n"
        return b"%b%b%b%b" % (before_date, changing.encode(), after_id, reply.body)


@lru_cache(maxsize=256)
def _fixed_parts(
    status: int, content_type: str, headers: tuple[tuple[str, str], ...], length: int
) -> tuple[bytes, bytes]:
    """Return the head before the value of Date, and that after the request id, as aiohttp writes them."""
    fields = [("Content-Type", content_type)] if content_type else []
    fields += headers
    if status != HTTPStatus.NOT_MODIFIED:
        fields.append(("Content-Length", str(length)))
    start = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: {SERVER}\r\nDate: "
    return start.encode(), ("".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n").encode()
