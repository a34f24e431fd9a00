# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulated IMDS over HTTP: one handler for every listener."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from ..protocol.approval_request import MAX_BODY
from ..protocol.request_target import EVENTS, UNKNOWN, Target, parse_target
from ..protocol.request_validation import Request, reject
from ..protocol.responses import JSON_TYPE, Reply, error, too_many_requests
from ..protocol.static_answers import StaticAnswers, static_reply
from ..scenario.groups import Vm
from .active_faults import ActiveFault
from .answer_headers import answer_headers
from .client_errors import LOGGER
from .engine import Engine
from .faulty_answers import FaultyAnswers
from .request_log import RequestInfo, log_request, source_of

# the faults with which the client gets the whole document
_WHOLE_ANSWERS = frozenset(("delay", "oversized", "date-skew", "close-idle"))


class ImdsHandler:
    """Answers the requests of all VMs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._by_source = {vm.source: vm for vm in engine.world.vms.values() if vm.source}
        self._default = engine.world.vms.get(engine.scenario.default_vm or "")
        self._unknown_addresses: set[str] = set()
        self._faulty = FaultyAnswers(engine)
        self._static = StaticAnswers(engine.scenario.answers)

    def listener(self, vm: Vm | None) -> web.Server:
        """Return the protocol factory of the address of ``vm``; None: the source address identifies the clients."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            return await self._handle(request, vm or self._by_source.get(source_of(request), self._default))

        # aiohttp answers a request that is not valid HTTP by 400, and closes the connection
        return web.Server(handle, access_log=None, logger=LOGGER)

    async def _handle(self, request: web.BaseRequest, vm: Vm | None) -> web.StreamResponse:
        engine = self._engine
        now = engine.settle()
        target = parse_target(request.raw_path)
        if target.route == UNKNOWN and self._static and vm is not None:
            target = self._static.resolve(request.method, request.raw_path, target, vm)
        fault = None
        if vm is None:
            reply = self._unknown_client(source_of(request) or "?")
        elif not engine.within_rate(vm, target.route):
            reply = too_many_requests()
        else:
            if engine.world.epoch is None and self._begins(request, target):
                engine.begin_on_first_request(now)
            fault = engine.faults.match(vm.name, target.route, request.method, now) if engine.faults else None
            if fault is not None:
                return await self._faulty.answer(fault, _Exchange(self, request, vm, target, fault))
            reply = await self.regular_reply(request, vm, target, request.headers)
            self.note_views(vm, reply)
        self.log(request, vm, target, reply.status, None)
        return web.Response(status=reply.status, body=reply.body, headers=self.headers(reply))

    def note_views(self, vm: Vm, reply: Reply) -> None:
        """Log the events that ``vm`` receives for the first time with ``reply``."""
        self._engine.note_views(vm, reply.events)

    def _begins(self, request: web.BaseRequest, target: Target) -> bool:
        """Return True for a valid request for the document, which begins simulated time (reference 4.1.8)."""
        return (
            target.route == EVENTS
            and request.method == "GET"
            and reject(Request("GET", target, request.headers), self._engine.world.knobs) is None
        )

    def _unknown_client(self, address: str) -> Reply:
        if address not in self._unknown_addresses and len(self._unknown_addresses) < 1000:
            self._unknown_addresses.add(address)
            self._engine.log("unknown-client", address=address, hint="no VM of the scenario has this source address")
        return error(404, f"Not found. No simulated VM has the source address {address}")

    async def regular_reply(
        self, request: web.BaseRequest, vm: Vm, target: Target, headers: Mapping[str, str]
    ) -> Reply:
        """Return the reply of IMDS to a request with ``headers``."""
        engine, knobs = self._engine, self._engine.world.knobs
        imds_request = Request(request.method, target, headers)
        if target.answers:
            return static_reply(imds_request, knobs)
        rejection = reject(imds_request, knobs)
        if rejection is not None:
            if request.method == "POST":
                engine.log("approval-refused", vm=vm.name, status=rejection.status, why=rejection.body.decode())
            return rejection
        if target.route != EVENTS:
            return engine.service.metadata(imds_request, vm)
        if request.method == "POST":
            return await self._approve(request, imds_request, vm)
        scope = engine.register_request(vm, engine.clock.now())
        if scope.enabled_at is not None and scope.enabled_at > engine.clock.now():
            if knobs.empty_body_until_enabled:
                return Reply(200, b"", JSON_TYPE)
            await engine.clock.wait_until(scope.enabled_at)
            engine.settle()
        return engine.service.events(imds_request, vm)

    async def _approve(self, request: web.BaseRequest, imds_request: Request, vm: Vm) -> Reply:
        engine = self._engine
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await read_body(request, MAX_BODY)
        except (web.RequestPayloadError, ConnectionResetError):
            return error(400, "Bad request. The request body cannot be read")
        result = engine.service.approve(imds_request, vm, body, engine.settle())
        if result.reply.status == 200:
            engine.register_request(vm, engine.clock.now())
        engine.log("approval", vm=vm.name, status=result.reply.status, **(result.note or {}))
        engine.record(result.occurrences)
        engine.wake_ticker()
        return result.reply

    # -- the response

    def log(
        self, request: web.BaseRequest, vm: Vm | None, target: Target, status: int, active: ActiveFault | None
    ) -> None:
        """Log the request; ``status`` is 0 when the client got no complete answer."""
        info = RequestInfo(vm.name if vm else "", target.route, target.version or "")
        log_request(self._engine, request, info, status, active)

    def headers(self, reply: Reply, skew: float = 0.0) -> CIMultiDict[str]:
        """Return the headers of docs/reference/scheduled-events.md 1.4.14; ``skew``: seconds that Date is off."""
        return answer_headers(reply, self._engine.clock.now() + skew)


class _Exchange:
    """One request of a VM, for the faults."""

    def __init__(
        self, handler: ImdsHandler, request: web.BaseRequest, vm: Vm, target: Target, active: ActiveFault
    ) -> None:
        self.request = request
        self._is_answered_whole = active.fault.action in _WHOLE_ANSWERS
        self._handler = handler
        self._vm = vm
        self._target = target

    async def regular_reply(self, headers: Mapping[str, str]) -> Reply:
        reply = await self._handler.regular_reply(self.request, self._vm, self._target, headers)
        if self._is_answered_whole:
            self._handler.note_views(self._vm, reply)
        return reply

    def error_body(self, status: int, message: str) -> Any:
        return {"error": message}

    def headers(self, reply: Reply, skew: float = 0.0) -> CIMultiDict[str]:
        return self._handler.headers(reply, skew)

    def log(self, status: int, active: ActiveFault) -> None:
        self._handler.log(self.request, self._vm, self._target, status, active)


async def read_body(request: web.BaseRequest, limit: int) -> bytes:
    """Read the body, at most ``limit`` + 1 bytes: one byte more than the limit shows that the body is too long."""
    parts: list[bytes] = []
    size = 0
    while size <= limit:
        part = await request.content.read(limit + 1 - size)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)
