# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulated Azure Resource Manager over HTTP, below ``/arm`` of the control address."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from ..protocol.approval_request import MAX_BODY
from ..protocol.arm import ArmContract, ArmRequest, arm_error_body
from ..protocol.responses import Reply
from ..scenario.fault import ARM_ROUTE
from ..times import http_date
from .active_faults import ActiveFault
from .engine import Engine
from .faulty_answers import FaultyAnswers
from .imds_handler import read_body
from .request_log import RequestInfo, log_request

PREFIX = "/arm"


class ArmHandler:
    """Answers requests to Azure Resource Manager.

    ``token`` is the bearer token that requests need while the knob ``arm_token`` is empty; empty: any.
    """

    def __init__(self, engine: Engine, token: str) -> None:
        self._engine = engine
        self._contract = ArmContract(engine.simulation, engine.resource_ids, token)
        self._faulty = FaultyAnswers(engine)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for aiohttp."""
        return [web.route("*", PREFIX + "/{path:.*}", self.handle)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, or apply the fault that is active."""
        engine = self._engine
        now = engine.settle()
        arm_request = ArmRequest(
            request.method,
            request.raw_path.partition("?")[0][len(PREFIX) :],
            tuple(request.query.getall("api-version", [])),
            request.headers.get("Authorization", ""),
        )
        vm = self._contract.vm(arm_request)
        exchange = _Exchange(request, arm_request, vm.name if vm else "", self._contract, engine)
        fault = engine.faults.match(exchange.vm, ARM_ROUTE, request.method, now) if engine.faults else None
        if fault is not None:
            return await self._faulty.answer(fault, exchange)
        reply = await exchange.regular_reply(request.headers)
        exchange.log(reply.status, None)
        return web.Response(status=reply.status, body=reply.body, headers=exchange.headers(reply))


class _Exchange:
    """One request to Azure Resource Manager; ``vm`` is the VM that its path names."""

    def __init__(
        self, request: web.Request, arm_request: ArmRequest, vm: str, contract: ArmContract, engine: Engine
    ) -> None:
        self.request: web.BaseRequest = request
        self.vm = vm
        self._arm_request = arm_request
        self._contract = contract
        self._engine = engine

    async def regular_reply(self, headers: Mapping[str, str]) -> Reply:
        engine = self._engine
        try:
            body = await read_body(self.request, MAX_BODY)
        except (web.RequestPayloadError, ConnectionResetError):
            body = b""
        result = self._contract.reply(self._arm_request._replace(body=body), engine.settle())
        engine.log("approval", vm=self.vm, by=ARM_ROUTE, status=result.reply.status, **(result.note or {}))
        engine.record(result.occurrences)
        engine.wake_ticker()
        return result.reply

    def error_body(self, status: int, message: str) -> Any:
        return arm_error_body("InjectedFault", message)

    def headers(self, reply: Reply, skew: float = 0.0) -> CIMultiDict[str]:
        headers = CIMultiDict(
            {"Date": http_date(int(self._engine.clock.now() + skew)), "x-ms-request-id": str(uuid.uuid4())}
        )
        if reply.content_type:
            headers["Content-Type"] = reply.content_type
        for name, value in reply.headers:
            headers[name] = value
        return headers

    def log(self, status: int, active: ActiveFault | None) -> None:
        versions = self._arm_request.versions
        info = RequestInfo(self.vm, ARM_ROUTE, versions[0] if versions else "")
        log_request(self._engine, self.request, info, status, active)
