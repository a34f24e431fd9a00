# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Applies a fault to a request or its connection."""

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

# real seconds between two checks whether the client has disconnected or the fault is over
_CHECK_INTERVAL = 0.1
_STANDARD_MESSAGES = {429: "Too many requests", 410: "Gone. The service is updating", 500: "Internal server error"}


class ConnectionConsumed(web.StreamResponse):
    """The answer was written to the connection directly, or not at all; aiohttp must not send one."""

    async def prepare(self, request: web.BaseRequest) -> Any:
        """Make aiohttp drop the connection."""
        raise ConnectionResetError("a fault has consumed this connection")


def injected_reply(options: Mapping[str, Any], now: float, error_body: Callable[[int, str], Any]) -> Reply:
    """Return the reply of a status or body fault.

    ``now`` is the time of the simulator's clock; ``error_body`` returns the body of an error from its status and
    message.
    """
    status = int(options["status"])
    headers = [(str(name), str(value)) for name, value in dict(options.get("headers", {})).items()]
    if "retry_after" in options:
        seconds = float(options["retry_after"])
        as_date = options.get("retry_after_format") == "date"
        headers.append(("Retry-After", http_date(now + seconds) if as_date else str(int(seconds))))
    if "location" in options:
        headers.append(("Location", str(options["location"])))
    if "body" in options:
        return Reply(status, options["body"], str(options.get("content_type", JSON_TYPE)), tuple(headers))
    default = _STANDARD_MESSAGES.get(status) or f"{_phrase(status)}"
    return json_reply(error_body(status, str(options.get("message", default))), status, tuple(headers))


def corrupted_body(reply: Reply, how: str) -> bytes:
    """Return the body of ``reply``, damaged; ``how`` is "bom", "cut" or "invalid-utf8"."""
    if how == "bom":
        return b"\xef\xbb\xbf" + reply.body
    if how == "cut":
        return reply.body[: len(reply.body) // 2]
    # the body stays JSON: only the encoding is wrong
    return reply.body[:-1] + b',"Note":"\xff\xfe"}' if reply.body.endswith(b"}") else b"\xff" + reply.body


def head(reply: Reply, headers: Mapping[str, str]) -> bytes:
    """Return status line and headers of an answer that bypasses aiohttp."""
    lines = [f"HTTP/1.1 {reply.status} {_phrase(reply.status)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def reset(transport: asyncio.BaseTransport | None) -> None:
    """Close the connection with RST instead of FIN."""
    if transport is None:
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    getattr(transport, "abort", transport.close)()


async def truncate(
    request: web.BaseRequest, reply: Reply, headers: Mapping[str, str], options: Mapping[str, Any]
) -> ConnectionConsumed:
    """Send part of the body and close the connection."""
    keep = int(options.get("keep", max(1, len(reply.body) // 2)))
    part = reply.body[:keep]
    if options["how"] == "chunked":
        chunked = {name: value for name, value in headers.items() if name.lower() != "content-length"}
        data = head(reply, {**chunked, "Transfer-Encoding": "chunked"}) + b"%x\r\n" % len(reply.body) + part
    else:
        # at least one byte is missing, also of an empty body
        length = {"Content-Length": str(max(len(reply.body), keep + 1))}
        data = head(reply, {**headers, **length}) + part
    _write(request, data)
    if request.transport is not None:
        request.transport.close()
    return ConnectionConsumed()


async def trickle(
    request: web.BaseRequest, reply: Reply, headers: Mapping[str, str], options: Mapping[str, Any]
) -> ConnectionConsumed:
    """Send the answer a few bytes at a time; ``bytes_per_second`` counts real seconds."""
    start = head(reply, headers)
    slow = start + reply.body if options["part"] == "header" else reply.body
    if options["part"] == "body":
        _write(request, start)
    rate = max(0.01, float(options["bytes_per_second"]))
    size = max(1, int(rate * _CHECK_INTERVAL))
    for position in range(0, len(slow), size):
        if _is_disconnected(request):
            return ConnectionConsumed()
        _write(request, slow[position : position + size])
        await asyncio.sleep(size / rate)
    if request.transport is not None:
        request.transport.close()
    return ConnectionConsumed()


async def hang(request: web.BaseRequest, is_active: Callable[[], bool]) -> ConnectionConsumed:
    """Send nothing until the client disconnects or the fault is over."""
    while not _is_disconnected(request) and is_active():
        await asyncio.sleep(_CHECK_INTERVAL)
    if request.transport is not None:
        request.transport.close()
    return ConnectionConsumed()


def _is_disconnected(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _write(request: web.BaseRequest, data: bytes) -> None:
    transport = request.transport
    if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
        transport.write(data)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(map(int, HTTPStatus)) else "Unknown"
