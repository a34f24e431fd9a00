# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One request of a client: the answer of its service, or the effect of a fault on it, and its entry in the log."""

from __future__ import annotations

import asyncio
import socket
import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.client import responses
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from ..faults.registry import ActiveFault
from ..http_reply import Reply
from ..protocol.contract import Result
from ..times import http_date
from .engine import Engine

_METHODS = frozenset(("GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"))
_MESSAGES = {429: "Too many requests", 410: "Gone. The service is updating", 500: "Internal server error"}
# asyncio holds only weak references to its tasks
_CLOSING: set[asyncio.Task[None]] = set()


class ServiceExchange(ABC):
    """An exchange of faults/exchange.py; each service has a class below it.

    ``vm`` (empty: unknown), ``route`` and ``version`` are for the log. ``response`` is what aiohttp has to send.
    """

    def __init__(self, engine: Engine, request: web.BaseRequest, vm: str, route: str, version: str) -> None:
        self.engine = engine
        self.request = request
        self.vm = vm
        self.response: web.StreamResponse = _NoResponse()
        self._route = route
        self._version = version
        self._active: ActiveFault | None = None

    @abstractmethod
    async def reply(self, headers: Mapping[str, str], arrives: bool) -> Reply:
        """Let the service act on the request with ``headers``; ``arrives``: the client gets the whole reply."""

    @abstractmethod
    def error_reply(self, status: int, message: str) -> Reply:
        """Return an error in the shape of the service."""

    def headers(self, answer: Reply, skew: float = 0.0) -> CIMultiDict[str]:
        """Return the headers of an answer (docs/reference/scheduled-events.md 1.4.14) with a Date that is off."""
        headers = CIMultiDict({"Date": http_date(int(self.now() + skew)), "x-ms-request-id": str(uuid.uuid4())})
        if answer.content_type:
            headers["Content-Type"] = answer.content_type
        for name, value in answer.headers:
            headers[name] = value
        return headers

    async def answer(self) -> web.StreamResponse:
        """Return the answer of the service, or what the fault that applies to the request makes of it."""
        faults = self.engine.faults
        self._active = faults.match(self.vm, self._route, self.request.method, self.now())
        if self._active is None:
            return self.send(await self.reply(self.request.headers, True))
        await self._active.fault.effect.answer(self)
        return self.response

    async def body(self) -> bytes | None:
        """Return the body of the request; None if it cannot be read."""
        try:
            return await self.request.read()
        except (web.RequestPayloadError, web.HTTPRequestEntityTooLarge, ConnectionResetError):
            return None

    def approval(self, result: Result, **more: str) -> Reply:
        """Log an approval with ``more``, record what it changed, and return the reply."""
        self.engine.log("approval", vm=self.vm, **more, status=result.reply.status, **result.note)
        self.engine.record(result.occurrences)
        return result.reply

    def now(self) -> float:
        return self.engine.clock.now()

    async def wait(self, simulated: float) -> None:
        await self.engine.clock.wait_until(self.now() + self.engine.world.to_wall_seconds(simulated))

    def is_fault_active(self) -> bool:
        return self._active is not None and self._active.is_active_at(self.now())

    async def normal_answer(self, *, arrives: bool = False, conditional: bool = True) -> Reply:
        headers: CIMultiDict[str] = CIMultiDict(self.request.headers)
        if not conditional:
            headers.popall("If-None-Match", None)
        return await self.reply(headers, arrives)

    def error(self, status: int) -> Reply:
        return self.error_reply(status, _MESSAGES.get(status, _phrase(status)))

    def send(self, answer: Reply, skew: float = 0.0) -> web.StreamResponse:
        self._log(answer.status)
        self.response = web.Response(status=answer.status, body=answer.body, headers=self.headers(answer, skew))
        return self.response

    def close_after(self, simulated: float) -> None:
        async def close() -> None:
            await self.wait(simulated)
            self.close()

        task = asyncio.get_running_loop().create_task(close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    def head(self, answer: Reply, framing: tuple[str, str]) -> bytes:
        lines = [f"HTTP/1.1 {answer.status} {_phrase(answer.status)}"]
        lines += [f"{name}: {value}" for name, value in (*self.headers(answer).items(), framing)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def take_over(self) -> None:
        self._log(0)

    def is_open(self) -> bool:
        return self.request.transport is not None and not self.request.transport.is_closing()

    def write(self, data: bytes) -> None:
        transport = self.request.transport
        if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
            transport.write(data)

    def close(self) -> None:
        if self.request.transport is not None:
            self.request.transport.close()

    def reset(self) -> None:
        self.take_over()
        transport = self.request.transport
        if transport is None:
            return
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        getattr(transport, "abort", transport.close)()

    def _log(self, status: int) -> None:
        self.engine.activity_log.add_request(
            self.now(),
            self.vm,
            self.request.method if self.request.method in _METHODS else "other",
            self._route,
            self._version[:32],
            status,
            self._active.fault.kind if self._active is not None else "",
            source_of(self.request),
        )


class _NoResponse(web.StreamResponse):
    """The answer of an effect that took over the connection."""

    async def prepare(self, request: web.BaseRequest) -> Any:
        """Make aiohttp drop the connection without an answer."""
        raise ConnectionResetError("a fault has taken this connection")


def source_of(request: web.BaseRequest) -> str:
    """Return the source address of a request; a dual-stack socket shows 10.0.0.1 as ::ffff:10.0.0.1."""
    address = request.remote or ""
    return address[7:] if address.startswith("::ffff:") else address


def _phrase(status: int) -> str:
    return responses.get(status, "Unknown")
