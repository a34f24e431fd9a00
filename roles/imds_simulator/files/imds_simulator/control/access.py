# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Which requests the control API answers: the token, the Host header, and the origin.

Without a token only programs of this machine reach the control API, and a browser is such a program. A web
site could send requests by the browser of a user, or point a name of its own to 127.0.0.1 (DNS rebinding).
Therefore the Host header has to be an address or a known name, and requests of other origins are refused.
Clients that are not browsers send neither Origin nor Sec-Fetch-Site.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable
from typing import Callable

from aiohttp import web

from ..http_reply import bearer_token
from ..scenario.groups import Address
from ..server.arm_handler import PREFIX as ARM_PREFIX

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_SAFE_METHODS = frozenset(("GET", "HEAD"))
# these show no state; the simulated Azure Resource Manager checks the token itself
_OPEN_PATHS = frozenset(("/health", "/", "/page.css", "/page.js", "/favicon.ico"))


class Access:
    """The rules for requests to the control address.

    An empty ``token`` means that requests need none; ``host`` is as the user gave it.
    """

    def __init__(self, token: str, host: str) -> None:
        self.token = token
        # the name of this machine without its domain, for which the resolver may ask a slow server
        self._names = frozenset(("localhost", host.lower(), socket.gethostname().lower()))

    @web.middleware
    async def middleware(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse requests from other sites, and those without the token."""
        self._check_host(request)
        _check_origin(request)
        is_open = request.path in _OPEN_PATHS or request.path.startswith(ARM_PREFIX + "/")
        if not is_open and not self._has_token(request):
            raise web.HTTPUnauthorized(
                reason="the token is missing or wrong; send Authorization: Bearer TOKEN, or set "
                "IMDS_SIMULATOR_CONTROL_TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return await handler(request)

    def _has_token(self, request: web.Request) -> bool:
        """Return True if ``request`` has the token, or needs none."""
        given = bearer_token(request.headers.get("Authorization", ""))
        return not self.token or hmac.compare_digest(given.encode(errors="replace"), self.token.encode())

    def _check_host(self, request: web.Request) -> None:
        host = request.headers.get("Host")
        # a site that rebinds its name does not have the token
        if self.token or host is None:
            return
        name = _host_name(host)
        if Address(name, 0).ip is None and name not in self._names and not name.endswith(".localhost"):
            raise web.HTTPForbidden(
                reason="Host: this name is not known to the simulator; use its address, or set --control-token"
            )


def _check_origin(request: web.Request) -> None:
    """Refuse requests that a page of another origin made."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    # a link on another site may lead here
    is_link = request.method in _SAFE_METHODS and request.headers.get("Sec-Fetch-Mode") == "navigate"
    is_foreign = site not in ("same-origin", "none") and not is_link
    origin = request.headers.get("Origin")
    if request.method not in _SAFE_METHODS and origin is not None:
        is_foreign = is_foreign or origin.partition("://")[2].lower() != request.headers.get("Host", "").lower()
    if is_foreign:
        raise web.HTTPForbidden(reason="Origin: a page of another site sent this request; use the simulator's own page")


def _host_name(header: str) -> str:
    """Return the host in a Host header, without port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].rstrip(".").lower()
