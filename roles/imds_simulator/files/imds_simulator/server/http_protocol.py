# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""HTTP connections to the simulated IMDS, and the answer to a request that is not valid HTTP.

See docs/reference/scheduled-events.md 1.6.12. Aiohttp parses and answers all requests, except for those that
repeated_requests can answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, Callable

from aiohttp import web
from aiohttp.http import HttpProcessingError, HttpVersion10, RawRequestMessage
from aiohttp.http_exceptions import LineTooLong
from yarl import URL

from ..scenario.groups import Vm
from .http_rules import is_valid
from .repeated_requests import RepeatedRequests
from .request_log import plain_address

# bytes; they differ, because aiohttp's error has no other sign of the part that is too long
MAX_REQUEST_LINE = 8190
MAX_HEADER = 8192
# seconds; at least so often a request takes the regular path, because aiohttp closes a connection on which it
# sees no request for a time, which is 75 s in older versions
REGULAR_INTERVAL = 30.0
# headers of requests that do not end after Content-Length bytes
_ENDS_OTHERWISE = ("Transfer-Encoding", "Upgrade")


class ImdsServer(web.Server):
    """The protocol factory of a listening address.

    Args:
        handler: answers a request.
        answer_malformed: returns the answer to a request that is not valid HTTP, from the request
            without its content and the status 400, 414 or 431.
        repeated: answers requests that were received before.
        vm_at: returns the VM with a source address.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        answer_malformed: Callable[[web.BaseRequest, int], web.Response],
        repeated: RepeatedRequests,
        vm_at: Callable[[str], Vm | None],
    ) -> None:
        super().__init__(self._handle, request_factory=_request)
        self._handler = handler
        self._answer_malformed = answer_malformed
        self.repeated = repeated
        self.vm_at = vm_at

    def __call__(self) -> web.RequestHandler:
        """Return the protocol of a new connection."""
        return _Connection(self)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        return self.refuse(request, 400) if isinstance(request, _MalformedRequest) else await self._handler(request)

    def refuse(self, request: web.BaseRequest, status: int) -> web.Response:
        """Return the answer to a request that is not valid HTTP, after which the connection closes."""
        answer = self._answer_malformed(request, status)
        answer.force_close()
        return answer


class _MalformedRequest(web.BaseRequest):
    """A request that aiohttp has parsed although it is not valid HTTP."""


def _request(message: RawRequestMessage, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    kind = web.BaseRequest
    if not is_valid(message):
        # as aiohttp does for a request that it cannot parse; the answer has the version of the request
        message = message._replace(method="UNKNOWN", path="/", version=HttpVersion10, url=URL("/"))
        kind = _MalformedRequest
    return kind(message, payload, protocol, writer, task, asyncio.get_running_loop())


class _Connection(web.RequestHandler):
    """A connection that knows whether aiohttp has answered everything that has arrived.

    Only then a request may be answered here: answers keep their order, and no bytes are left in aiohttp's
    parser. It is known by counting: aiohttp has answered a request, and exactly the bytes of that request
    have arrived. Otherwise, for example after requests that were sent without waiting for the answers, all
    further requests take the regular path.
    """

    __slots__ = ("_first", "_is_answered", "_received", "_regular_at", "_server", "_source", "_vm")

    def __init__(self, server: ImdsServer) -> None:
        options: Any = {"access_log": None, "max_line_size": MAX_REQUEST_LINE, "max_field_size": MAX_HEADER}
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._server = server
        self._vm: Vm | None = None
        self._source = ""
        self._is_answered = True
        # the first part and the size of what has arrived since everything was answered
        self._first = b""
        self._received = 0
        self._regular_at = time.monotonic() + REGULAR_INTERVAL

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note which VM is connected."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._source = plain_address(str(peer[0])) if isinstance(peer, (list, tuple)) else ""
        self._vm = self._server.vm_at(self._source)

    def data_received(self, data: bytes) -> None:
        """Answer a request that was received before, or leave the data to aiohttp."""
        if self._is_answered:
            if self._answer_repeated(data):
                return
            self._is_answered, self._first, self._received = False, data, 0
        self._received += len(data)
        try:
            super().data_received(data)
        except ValueError:
            # older versions of aiohttp do not handle yarl's error for a target; no version accepts this byte
            super().data_received(b"\0")

    def _answer_repeated(self, data: bytes) -> bool:
        transport = self.transport
        if self._vm is None or not isinstance(transport, asyncio.WriteTransport):
            return False
        # a client that does not read its answers has to wait, which aiohttp does
        if time.monotonic() >= self._regular_at or transport.get_write_buffer_size():
            return False
        answer = self._server.repeated.answer(data, self._vm, self._source)
        if answer is None:
            return False
        transport.write(answer)
        return True

    async def finish_response(self, request: web.BaseRequest, resp: web.StreamResponse, start_time: Any) -> Any:
        """Send the answer, and note whether everything that has arrived is answered now.

        The returned value differs between versions of aiohttp.
        """
        result = await super().finish_response(request, resp, start_time)
        # it is None for an answer that was not sent
        if resp.keep_alive and _size(request, self._first) == self._received:
            self._is_answered = True
            self._regular_at = time.monotonic() + REGULAR_INTERVAL
            if self._received == len(self._first) and not request.content_length:
                self._server.repeated.remember(self._first, request)
        return result

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log an error, unless it is a body that cannot be read: the client has the answer already."""
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that aiohttp cannot parse as IMDS does, and close the connection."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        return self._server.refuse(request, _status(exc))


def _status(error: HttpProcessingError) -> int:
    if not isinstance(error, LineTooLong):
        return 400
    return 414 if str(MAX_REQUEST_LINE) in map(str, error.args[1:2]) else 431


def _size(request: web.BaseRequest, data: bytes) -> int:
    """Return the size of ``request``, which begins with ``data``, or -1 if it is unknown."""
    end = data.find(b"\r\n\r\n")
    # older versions of aiohttp accept lines that end in LF alone, so that the first request may end before
    if (
        end < 0
        or data.count(b"\n", 0, end) != data.count(b"\r\n", 0, end)
        or request.method not in ("GET", "POST")
        or any(name in request.headers for name in _ENDS_OTHERWISE)
    ):
        return -1
    return end + 4 + (request.content_length or 0)
