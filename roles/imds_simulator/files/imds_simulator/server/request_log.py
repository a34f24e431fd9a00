# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Writes a request of a client to the log."""

from __future__ import annotations

from typing import NamedTuple

from aiohttp import web

from .active_faults import ActiveFault
from .engine import Engine

_METHODS = frozenset(("GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"))


class RequestInfo(NamedTuple):
    """The data of a request that its log entry has; ``vm`` is empty for an unknown VM."""

    vm: str
    route: str
    version: str


def log_request(
    engine: Engine, request: web.BaseRequest, info: RequestInfo, status: int, active: ActiveFault | None
) -> None:
    """Add one request to the log; ``status`` is 0 when the client got no complete answer."""
    engine.activity_log.add_request(
        engine.clock.now(),
        info.vm,
        request.method if request.method in _METHODS else "other",
        info.route,
        info.version[:32],
        status,
        active.fault.kind if active else "",
        source_of(request),
    )


def source_of(request: web.BaseRequest) -> str:
    """Return the source address of a request; a dual-stack socket shows 10.0.0.1 as ::ffff:10.0.0.1."""
    address = request.remote or ""
    return address[7:] if address.startswith("::ffff:") else address
