# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Answers a request to which a fault applies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from aiohttp import web
from multidict import CIMultiDict

from ..protocol.responses import Reply
from . import fault_injection
from .active_faults import ActiveFault
from .engine import Engine

_BODY_ACTIONS = frozenset(("truncate", "trickle", "mangle", "oversized"))


class Exchange(Protocol):
    """One request, and how its service answers it."""

    request: web.BaseRequest

    async def regular_reply(self, headers: Mapping[str, str]) -> Reply:
        """Return the reply of the service to the request with ``headers``."""

    def error_body(self, status: int, message: str) -> Any:
        """Return the body of an error in the shape of the service."""

    def headers(self, reply: Reply, skew: float = 0.0) -> CIMultiDict[str]:
        """Return the headers of the answer; ``skew``: seconds that Date is off."""

    def log(self, status: int, active: ActiveFault) -> None:
        """Log the request; ``status`` is 0 when the client got no complete answer."""


class FaultyAnswers:
    """Answers requests to which a fault applies."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._closing: set[asyncio.Task[None]] = set()

    async def answer(self, active: ActiveFault, exchange: Exchange) -> web.StreamResponse:
        """Apply ``active`` to a request and return the answer."""
        engine, request, fault, options = self._engine, exchange.request, active.fault, active.fault.options
        now = engine.clock.now()
        if fault.action in ("status", "body"):
            reply = fault_injection.injected_reply(options, now, exchange.error_body)
            return _respond(exchange, reply, active)
        if fault.action in ("hang", "reset", "lost-request"):
            exchange.log(0, active)
            if fault.action == "hang":
                return await fault_injection.hang(
                    request, lambda: engine.faults.is_active(active.number, engine.clock.now())
                )
            fault_injection.reset(request.transport)
            return fault_injection.ConnectionConsumed()
        if fault.action == "delay":
            await engine.clock.wait_until(now + engine.world.to_wall_seconds(_number(options["delay"])))
        # these faults change a body, and a 304 has none
        headers = _unconditional(request.headers) if fault.action in _BODY_ACTIONS else request.headers
        reply = await exchange.regular_reply(headers)
        if fault.action in ("truncate", "trickle"):
            exchange.log(0, active)
            act = fault_injection.truncate if fault.action == "truncate" else fault_injection.trickle
            return await act(request, reply, _wire_headers(exchange, reply), options)
        if fault.action == "lost-answer":
            exchange.log(0, active)
            fault_injection.reset(request.transport)
            return fault_injection.ConnectionConsumed()
        if fault.action == "mangle":
            reply = replace(reply, body=fault_injection.corrupted_body(reply, str(options["how"])))
        elif fault.action == "oversized":
            reply = replace(reply, body=reply.body.ljust(int(_number(options["size"]))))
        elif fault.action == "close-idle":
            self._close_at(request, now + engine.world.to_wall_seconds(_number(options["idle"])))
        skew = _number(options["skew"]) if fault.action == "date-skew" else 0.0
        return _respond(exchange, reply, active, skew)

    def _close_at(self, request: web.BaseRequest, moment: float) -> None:
        async def close() -> None:
            await self._engine.clock.wait_until(moment)
            if request.transport is not None:
                request.transport.close()

        task = asyncio.get_running_loop().create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _respond(exchange: Exchange, reply: Reply, active: ActiveFault, skew: float = 0.0) -> web.Response:
    exchange.log(reply.status, active)
    return web.Response(status=reply.status, body=reply.body, headers=exchange.headers(reply, skew))


def _wire_headers(exchange: Exchange, reply: Reply) -> Mapping[str, str]:
    return {**exchange.headers(reply), "Content-Length": str(len(reply.body))}


def _unconditional(headers: Mapping[str, str]) -> Mapping[str, str]:
    kept: CIMultiDict[str] = CIMultiDict(headers)
    kept.popall("If-None-Match", None)
    return kept


def _number(value: object) -> float:
    return float(str(value))
