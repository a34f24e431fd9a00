# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Carrying out a fault on a connection (T47, T49, T53, T56, T62)."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Callable

from aiohttp import web

from ..protocol.responses import JSON_TYPE, Reply, json_reply
from ..times import http_date

# how often a hanging answer looks whether its client has left or its fault is over, in real seconds
_LOOK = 0.1
_STANDARD_MESSAGES = {429: "Too many requests", 410: "Gone. The service is updating", 500: "Internal server error"}


class ConnectionConsumed(web.StreamResponse):
    """Stands for an answer that was written by hand, or never: aiohttp has to drop the connection."""

    async def prepare(self, request: web.BaseRequest) -> Any:
        raise ConnectionResetError("the fault has dealt with this connection")


def injected_reply(options: Mapping[str, Any], now: float) -> Reply:
    """The reply of a status or body fault."""
    status = int(options["status"])
    headers = [(str(name), str(value)) for name, value in dict(options.get("headers", {})).items()]
    if "retry_after" in options:
        later = float(options["retry_after"])
        as_date = options.get("retry_after_format") == "date"
        headers.append(("Retry-After", http_date(now + later) if as_date else str(int(later))))
    if "location" in options:
        headers.append(("Location", str(options["location"])))
    if "body" in options:
        return Reply(status, options["body"], str(options.get("content_type", JSON_TYPE)), tuple(headers))
    usual = _STANDARD_MESSAGES.get(status) or f"{_phrase(status)}"
    return json_reply({"error": options.get("message", usual)}, status, tuple(headers))


def corrupted_body(reply: Reply, how: str) -> bytes:
    """The body of ``reply``, spoilt."""
    if how == "bom":
        return b"\xef\xbb\xbf" + reply.body
    if how == "cut":
        return reply.body[: len(reply.body) // 2]
    # still JSON in shape, so that only the encoding is wrong
    return reply.body[:-1] + b',"Note":"\xff\xfe"}' if reply.body.endswith(b"}") else b"\xff" + reply.body


def head(reply: Reply, headers: Mapping[str, str]) -> bytes:
    """Status line and headers as bytes, for answers that aiohttp must not finish."""
    lines = [f"HTTP/1.1 {reply.status} {_phrase(reply.status)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def reset(transport: asyncio.BaseTransport | None) -> None:
    """Close with RST instead of FIN."""
    if transport is None:
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    getattr(transport, "abort", transport.close)()


async def truncate(
    request: web.BaseRequest, reply: Reply, headers: Mapping[str, str], options: Mapping[str, Any]
) -> ConnectionConsumed:
    """Send part of the body and close."""
    keep = int(options.get("keep", max(1, len(reply.body) // 2)))
    part = reply.body[:keep]
    if options["how"] == "chunked":
        chunked = {name: value for name, value in headers.items() if name.lower() != "content-length"}
        data = head(reply, {**chunked, "Transfer-Encoding": "chunked"}) + b"%x\r\n" % len(reply.body) + part
    else:
        # an empty body still promises something that never comes
        promised = {"Content-Length": str(max(len(reply.body), keep + 1))}
        data = head(reply, {**headers, **promised}) + part
    _write(request, data)
    if request.transport is not None:
        request.transport.close()
    return ConnectionConsumed()


async def trickle(
    request: web.BaseRequest, reply: Reply, headers: Mapping[str, str], options: Mapping[str, Any]
) -> ConnectionConsumed:
    """Send the answer a few bytes at a time; ``bytes_per_second`` is real time, a property of the wire."""
    start = head(reply, headers)
    slow = start + reply.body if options["part"] == "header" else reply.body
    if options["part"] == "body":
        _write(request, start)
    rate = max(0.01, float(options["bytes_per_second"]))
    size = max(1, int(rate * _LOOK))
    for position in range(0, len(slow), size):
        if _gone(request):
            return ConnectionConsumed()
        _write(request, slow[position : position + size])
        await asyncio.sleep(size / rate)
    if request.transport is not None:
        request.transport.close()
    return ConnectionConsumed()


async def hang(request: web.BaseRequest, still_on: Callable[[], bool]) -> ConnectionConsumed:
    """Say nothing until the client leaves or the fault is over."""
    while not _gone(request) and still_on():
        await asyncio.sleep(_LOOK)
    if request.transport is not None:
        request.transport.close()
    return ConnectionConsumed()


def _gone(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _write(request: web.BaseRequest, data: bytes) -> None:
    transport = request.transport
    if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
        transport.write(data)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(map(int, HTTPStatus)) else "Unknown"
