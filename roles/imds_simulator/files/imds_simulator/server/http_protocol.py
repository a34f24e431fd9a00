# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""HTTP connections to the simulated IMDS, and the answer to a request that is not valid HTTP.

See docs/reference/scheduled-events.md 1.6.12.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Callable

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import LineTooLong

# bytes; they differ, because aiohttp's error has no other sign of the part that is too long
MAX_REQUEST_LINE = 8190
MAX_HEADER = 8192


class ImdsServer(web.Server):
    """The protocol factory of a listening address.

    Args:
        handler: answers a request.
        answer_malformed: returns the answer to a request that is not valid HTTP, from the request
            without its content and the status 400, 414 or 431.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        answer_malformed: Callable[[web.BaseRequest, int], web.Response],
    ) -> None:
        super().__init__(handler)
        self._answer_malformed = answer_malformed

    def __call__(self) -> web.RequestHandler:
        """Return the protocol of a new connection."""
        return _Connection(self, self._answer_malformed)


class _Connection(web.RequestHandler):
    __slots__ = ("_answer_malformed",)

    def __init__(self, server: ImdsServer, answer_malformed: Callable[[web.BaseRequest, int], web.Response]) -> None:
        options: Any = {"access_log": None, "max_line_size": MAX_REQUEST_LINE, "max_field_size": MAX_HEADER}
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._answer_malformed = answer_malformed

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
        answer = self._answer_malformed(request, _status(exc))
        answer.force_close()
        return answer


def _status(error: HttpProcessingError) -> int:
    if not isinstance(error, LineTooLong):
        return 400
    return 414 if str(MAX_REQUEST_LINE) in map(str, error.args[1:2]) else 431
