# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulated IMDS over HTTP: one handler for every listener.

Each request runs it, therefore it is short.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web
from multidict import CIMultiDict

from ..protocol.request_target import EVENTS, Target, parse_target
from ..protocol.request_validation import Request, reject
from ..protocol.responses import JSON_TYPE, Reply, error, too_many_requests
from ..scenario.groups import Vm
from ..times import http_date
from . import fault_injection
from .active_faults import ActiveFault
from .engine import Engine

_SERVER = "IMDS/150.870.65.2042"
_BODY_ACTIONS = frozenset(("truncate", "trickle", "mangle", "oversized"))
_METHODS = frozenset(("GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"))


class ImdsHandler:
    """Answers the requests of all VMs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._by_source = {vm.source: vm for vm in engine.world.vms.values() if vm.source}
        self._default = engine.world.vms.get(engine.scenario.default_vm or "")
        self._date: tuple[int, str] = (0, "")
        self._unknown_addresses: set[str] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def listener(self, vm: Vm | None) -> web.Server:
        """Return the protocol factory of a listening address.

        Args:
            vm: the VM at that address; None: clients are identified by their source address.
        """

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            return await self._handle(request, vm or self._by_source.get(_source(request), self._default))

        return web.Server(handle, access_log=None)

    async def _handle(self, request: web.BaseRequest, vm: Vm | None) -> web.StreamResponse:
        engine = self._engine
        now = engine.settle()
        target = parse_target(request.raw_path)
        fault = None
        if vm is None:
            reply = self._unknown_client(_source(request) or "?")
        elif not self._within_rate(vm, target):
            reply = too_many_requests()
        else:
            if target.route == EVENTS and engine.world.epoch is None:
                engine.begin_on_first_request(now)
            fault = engine.faults.match(vm.name, target.route, request.method, now) if engine.faults else None
            if fault is not None:
                return await self._faulty_reply(fault, request, vm, target)
            reply = await self._regular_reply(request, vm, target, request.headers)
        return self._respond(request, vm, target, reply)

    def _within_rate(self, vm: Vm, target: Target) -> bool:
        knobs = self._engine.world.knobs
        if not knobs.rate_limit:
            return True
        client = vm.name if knobs.rate_limit_scope == "vm" else f"{vm.name} {target.route}"
        return self._engine.rate.allows(client, knobs.rate_limit, time.monotonic())

    def _unknown_client(self, address: str) -> Reply:
        if address not in self._unknown_addresses and len(self._unknown_addresses) < 1000:
            self._unknown_addresses.add(address)
            self._engine.log("unknown-client", address=address, hint="no VM of the scenario has this source address")
        return error(404, f"Not found. No simulated VM has the source address {address}")

    async def _regular_reply(
        self, request: web.BaseRequest, vm: Vm, target: Target, headers: Mapping[str, str]
    ) -> Reply:
        """Return the reply of IMDS to a request with ``headers``."""
        engine, knobs = self._engine, self._engine.world.knobs
        imds_request = Request(request.method, target, headers)
        rejection = reject(imds_request, knobs)
        if rejection is not None:
            if request.method == "POST":
                engine.log("approval-refused", vm=vm.name, status=rejection.status, why=rejection.body.decode())
            return rejection
        if target.route != EVENTS:
            return engine.service.metadata(imds_request, vm)
        scope = engine.register_request(vm, engine.clock.now())
        if scope.enabled_at is not None and scope.enabled_at > engine.clock.now() and request.method == "GET":
            if knobs.empty_body_until_enabled:
                return Reply(200, b"", JSON_TYPE)
            await engine.clock.wait_until(scope.enabled_at)
            engine.settle()
        if request.method == "GET":
            return engine.service.events(imds_request, vm)
        return await self._approve(request, imds_request, vm)

    async def _approve(self, request: web.BaseRequest, imds_request: Request, vm: Vm) -> Reply:
        engine = self._engine
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await read_body(request, engine.world.knobs.max_body)
        except (web.RequestPayloadError, ConnectionResetError):
            return error(400, "Bad request. The request body cannot be read")
        result = engine.service.approve(imds_request, vm, body, engine.settle())
        engine.log("approval", vm=vm.name, status=result.reply.status, **(result.note or {}))
        engine.record(result.occurrences)
        engine.wake_ticker()
        return result.reply

    # -- faults

    async def _faulty_reply(
        self, active: ActiveFault, request: web.BaseRequest, vm: Vm, target: Target
    ) -> web.StreamResponse:
        """Apply ``active`` to this request."""
        engine, fault, options = self._engine, active.fault, active.fault.options
        now = engine.clock.now()
        if fault.action in ("status", "body"):
            return self._respond(request, vm, target, fault_injection.injected_reply(options, now), active)
        if fault.action in ("hang", "reset", "lost-request"):
            self._log_request(request, vm, target, 0, active)
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
        reply = await self._regular_reply(request, vm, target, headers)
        if fault.action in ("truncate", "trickle"):
            self._log_request(request, vm, target, 0, active)
            act = fault_injection.truncate if fault.action == "truncate" else fault_injection.trickle
            return await act(request, reply, self._wire_headers(reply), options)
        if fault.action == "lost-answer":
            self._log_request(request, vm, target, 0, active)
            fault_injection.reset(request.transport)
            return fault_injection.ConnectionConsumed()
        if fault.action == "mangle":
            reply = replace(reply, body=fault_injection.corrupted_body(reply, str(options["how"])))
        elif fault.action == "oversized":
            reply = replace(reply, body=reply.body.ljust(int(_number(options["size"]))))
        elif fault.action == "close-idle":
            self._close_at(request, now + engine.world.to_wall_seconds(_number(options["idle"])))
        skew = _number(options["skew"]) if fault.action == "date-skew" else 0.0
        return self._respond(request, vm, target, reply, active, skew)

    def _close_at(self, request: web.BaseRequest, moment: float) -> None:
        async def close() -> None:
            await self._engine.clock.wait_until(moment)
            if request.transport is not None:
                request.transport.close()

        task = asyncio.get_running_loop().create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # -- the response

    def _respond(
        self,
        request: web.BaseRequest,
        vm: Vm | None,
        target: Target,
        reply: Reply,
        active: ActiveFault | None = None,
        skew: float = 0.0,
    ) -> web.StreamResponse:
        self._log_request(request, vm, target, reply.status, active)
        return web.Response(status=reply.status, body=reply.body, headers=self._headers(reply, skew))

    def _log_request(
        self, request: web.BaseRequest, vm: Vm | None, target: Target, status: int, active: ActiveFault | None
    ) -> None:
        method = request.method if request.method in _METHODS else "other"
        self._engine.activity_log.add_request(
            self._engine.clock.now(),
            vm.name if vm else "",
            method,
            target.route,
            (target.version or "")[:32],
            status,
            active.fault.kind if active else "",
            _source(request),
        )

    def _headers(self, reply: Reply, skew: float = 0.0) -> CIMultiDict[str]:
        """Return the headers of docs/reference/scheduled-events.md 1.4.14.

        ``skew``: seconds that Date is off.
        """
        moment = int(self._engine.clock.now() + skew)
        if moment != self._date[0]:
            self._date = (moment, http_date(moment))
        headers = CIMultiDict({"Server": _SERVER, "Date": self._date[1], "x-ms-request-id": str(uuid.uuid4())})
        if reply.content_type:
            headers["Content-Type"] = reply.content_type
        for name, value in reply.headers:
            headers[name] = value
        return headers

    def _wire_headers(self, reply: Reply) -> Mapping[str, str]:
        return {**self._headers(reply), "Content-Length": str(len(reply.body))}


def _unconditional(headers: Mapping[str, str]) -> Mapping[str, str]:
    kept: CIMultiDict[str] = CIMultiDict(headers)
    kept.popall("If-None-Match", None)
    return kept


def _source(request: web.BaseRequest) -> str:
    """Return the source address.

    A dual-stack socket shows 10.0.0.1 as ::ffff:10.0.0.1.
    """
    remote = request.remote or ""
    return remote[7:] if remote.startswith("::ffff:") else remote


async def read_body(request: web.BaseRequest, limit: int) -> bytes:
    """Read the body, at most ``limit`` + 1 bytes.

    One byte more than the limit shows that the body is too long.
    """
    parts: list[bytes] = []
    size = 0
    while size <= limit:
        part = await request.content.read(limit + 1 - size)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _number(value: object) -> float:
    return float(str(value))
