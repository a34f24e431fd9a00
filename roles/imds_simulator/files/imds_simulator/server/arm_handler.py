# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulated Azure Resource Manager over HTTP, below ``/arm`` of the control address."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from ..faults.fault import ARM_ROUTE
from ..http_reply import Reply
from ..protocol.arm import ArmContract, ArmRequest, arm_error
from .engine import Engine
from .exchange import ServiceExchange

PREFIX = "/arm"


def arm_route(engine: Engine, token: str) -> web.RouteDef:
    """Return the route of all requests; ``token`` is that of ArmContract."""
    contract = ArmContract(engine.simulation, engine.resource_ids, token)

    async def handle(request: web.Request) -> web.StreamResponse:
        arm_request = ArmRequest(
            request.method,
            request.raw_path.partition("?")[0][len(PREFIX) :],
            tuple(request.query.getall("api-version", [])),
            request.headers.get("Authorization", ""),
        )
        return await _Exchange(engine, request, arm_request, contract).answer()

    return web.route("*", PREFIX + "/{path:.*}", handle)


class _Exchange(ServiceExchange):
    """One request to Azure Resource Manager, about the VM that its path names."""

    def __init__(self, engine: Engine, request: web.Request, arm_request: ArmRequest, contract: ArmContract) -> None:
        vm = contract.vm(arm_request)
        super().__init__(engine, request, vm.name if vm else "", ARM_ROUTE, "".join(arm_request.versions[:1]))
        self._arm_request = arm_request
        self._contract = contract

    async def reply(self, headers: Mapping[str, str], arrives: bool) -> Reply:
        body = await self.body() or b""
        result = self._contract.reply(self._arm_request, body, self.engine.settle())
        # another method changes nothing
        return self.approval(result, by=ARM_ROUTE) if self.request.method == "POST" else result.reply

    def error_reply(self, status: int, message: str) -> Reply:
        return arm_error(status, "InjectedFault", message)
