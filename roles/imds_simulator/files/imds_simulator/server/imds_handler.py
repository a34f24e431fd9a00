# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulated IMDS over HTTP: one handler for every listener."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from multidict import CIMultiDict

from ..http_reply import Reply
from ..protocol.request import EVENTS, UNKNOWN, Request, Target, parse_target, reject
from ..protocol.responses import JSON_TYPE, error
from ..protocol.static_answers import static_reply, with_answers
from ..scenario.groups import Vm
from .engine import Engine
from .exchange import ServiceExchange, source_of

SERVER = "IMDS/150.870.65.2042"


class ImdsHandler:
    """Answers the requests of all VMs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._by_source = {vm.source: vm for vm in engine.world.vms.values() if vm.source}
        self._default = engine.world.vms.get(engine.scenario.default_vm or "")
        self._unknown_addresses: set[str] = set()

    def listener(self, vm: Vm | None) -> web.Server:
        """Return the protocol factory of the address of ``vm``; None: the source address identifies the clients."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            return await self._handle(request, vm or self._by_source.get(source_of(request), self._default))

        # aiohttp answers a request that is not valid HTTP by 400, and closes the connection
        return web.Server(handle, access_log=None)

    async def _handle(self, request: web.BaseRequest, vm: Vm | None) -> web.StreamResponse:
        engine = self._engine
        now = engine.settle()
        target = parse_target(request.raw_path)
        if target.route == UNKNOWN and vm is not None:
            target = with_answers(target, engine.scenario.answers, request.method, request.raw_path, vm)
        exchange = _Exchange(engine, request, vm, target)
        if vm is None:
            return exchange.send(self._unknown_client(source_of(request) or "?"))
        if vm.name in engine.world.removed:
            exchange.reset()
            return exchange.response
        if not engine.within_rate(vm, target.route):
            return exchange.send(exchange.error(429))
        if engine.world.epoch is None and self._begins(request, target):
            engine.begin_on_first_request(now)
        return await exchange.answer()

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


class _Exchange(ServiceExchange):
    """One request to IMDS."""

    def __init__(self, engine: Engine, request: web.BaseRequest, vm: Vm | None, target: Target) -> None:
        super().__init__(engine, request, vm.name if vm else "", target.route, target.version or "")
        self._vm = vm
        self._target = target

    async def reply(self, headers: Mapping[str, str], arrives: bool) -> Reply:
        assert self._vm is not None, "an unknown client gets an error"
        reply = await self._reply(Request(self.request.method, self._target, headers), self._vm)
        # a document: other replies for this route have another status, or no body
        if arrives and self._target.route == EVENTS and reply.status == 200 and reply.body:
            self.engine.note_views(self._vm, self._target.version or "")
        return reply

    def error_reply(self, status: int, message: str) -> Reply:
        return error(status, message)

    def headers(self, answer: Reply, skew: float = 0.0) -> CIMultiDict[str]:
        headers = super().headers(answer, skew)
        headers.setdefault("Server", SERVER)
        return headers

    async def _reply(self, request: Request, vm: Vm) -> Reply:
        engine, knobs = self.engine, self.engine.world.knobs
        if self._target.answers:
            return static_reply(request, knobs)
        rejection = reject(request, knobs)
        if rejection is not None:
            if request.method == "POST":
                engine.log("approval-refused", vm=vm.name, status=rejection.status, why=rejection.body.decode())
            return rejection
        if self._target.route != EVENTS:
            return engine.service.metadata(request, vm)
        if request.method == "POST":
            return await self._approve(request, vm)
        scope = engine.register_request(vm, engine.clock.now())
        if scope.enabled_at is not None and scope.enabled_at > engine.clock.now():
            if knobs.empty_body_until_enabled:
                return Reply(200, b"", JSON_TYPE)
            await engine.clock.wait_until(scope.enabled_at)
            engine.settle()
        return engine.service.events(request, vm)

    async def _approve(self, request: Request, vm: Vm) -> Reply:
        engine = self.engine
        if request.headers.get("Expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await self.body()
        if body is None:
            return error(400, "Bad request. The request body cannot be read")
        result = engine.service.approve(request, vm, body, engine.settle())
        if result.reply.status == 200:
            engine.register_request(vm, engine.clock.now())
        return self.approval(result)
