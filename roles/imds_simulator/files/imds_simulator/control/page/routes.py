# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API routes of the live page."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

from aiohttp import web

from ...server.engine import Engine
from ..access import Access
from .data import PageData
from .stream import Stream

_FOLDER = Path(__file__).parent
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # with no-referrer a browser sends Origin: null with the login form
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
# characters; a longer form is not a login
_MAX_FORM = 4096


class PageRoutes:
    """The page, its files, its stream, and the login."""

    def __init__(self, engine: Engine, endpoints: Callable[[], Mapping[str, str]], access: Access) -> None:
        self._access = access
        self._overview: list[str] = []
        self.stream = Stream(PageData(engine, endpoints, uuid.uuid4().hex))

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for aiohttp."""
        return [
            web.get("/", self.index),
            web.get("/page.css", self.style),
            web.get("/page.js", self.script),
            web.get("/stream", self.stream.serve, allow_head=False),
            web.post("/login", self.login),
            web.get("/favicon.ico", self.icon),
        ]

    def show_overview(self, routes: list[web.RouteDef]) -> None:
        """List ``routes`` in the answer to clients that are not browsers."""
        self._overview = sorted(f"{route.method} {route.path}" for route in routes)

    async def index(self, request: web.Request) -> web.Response:
        """Answer with the page to browsers, and with a list of the routes to other clients."""
        if not wants_html(request.headers.get("Accept", "")):
            return web.json_response({"endpoints": self._overview}, headers={"Vary": "Accept"})
        token = request.query.get("token")
        if token is not None and self._access.needs_token:
            return self._logged_in(request) if self._access.is_token(token) else _login_form(is_wrong=True)
        if not self._access.has_token(request):
            return _login_form(is_wrong=False)
        return _file("page.html", "text/html", {"Vary": "Accept, Cookie"})

    async def login(self, request: web.Request) -> web.Response:
        """Read the token of the login form and set the cookie."""
        form: Mapping[str, Any] = {}
        if (request.content_length or 0) <= _MAX_FORM:
            # a body that is not a form has no token
            with contextlib.suppress(ValueError, LookupError, web.RequestPayloadError):
                form = await request.post()
        if not self._access.needs_token or self._access.is_token(str(form.get("token", "")).strip()):
            return self._logged_in(request)
        return _login_form(is_wrong=True)

    async def style(self, _request: web.Request) -> web.Response:
        """Answer with the style of the page and of the login form."""
        return _file("page.css", "text/css")

    async def script(self, _request: web.Request) -> web.Response:
        """Answer with the script of the page."""
        return _file("page.js", "text/javascript")

    async def icon(self, _request: web.Request) -> web.Response:
        """Answer that there is no icon; browsers ask for it."""
        return web.Response(status=204)

    def _logged_in(self, request: web.Request) -> web.Response:
        answer = web.Response(status=303, headers={**_HEADERS, "Location": "/"})
        if self._access.needs_token:
            self._access.log_in(request, answer)
        return answer


def wants_html(accept: str) -> bool:
    """Return True if an Accept header names HTML, and prefers nothing else that the control API has."""
    quality = {"text/html": 0.0, "application/json": 0.0}
    for part in accept.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        if name in quality:
            quality[name] = _quality(parameters)
    return quality["text/html"] > 0 and quality["text/html"] >= quality["application/json"]


def _quality(parameters: list[str]) -> float:
    for each in parameters:
        key, _equals, value = each.partition("=")
        if key.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _file(name: str, content_type: str, headers: Mapping[str, str] | None = None) -> web.Response:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=content_type, headers={**_HEADERS, **(headers or {})})


def _login_form(is_wrong: bool) -> web.Response:
    text = (_FOLDER / "login.html").read_text(encoding="utf-8")
    if is_wrong:
        text = text.replace(' id="wrong" hidden', ' id="wrong"')
    return web.Response(
        text=text, status=401, content_type="text/html", headers={**_HEADERS, "WWW-Authenticate": "Bearer"}
    )
