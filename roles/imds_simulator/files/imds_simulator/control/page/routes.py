# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API routes of the live page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aiohttp import web

FOLDER = Path(__file__).parent
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def page_routes() -> list[web.RouteDef]:
    """Return the routes of the page and its files for aiohttp."""
    return [
        web.get("/", _index),
        web.get("/page.css", _style),
        web.get("/page.js", _script),
        web.get("/favicon.ico", _icon),
    ]


async def _index(request: web.Request) -> web.Response:
    """Answer with the page to browsers, and with a list of the routes to other clients."""
    if wants_html(request.headers.get("Accept", "")):
        return _file("page.html", "text/html", {"Vary": "Accept"})
    overview = sorted(
        f"{each.method} {each.resource.canonical}"
        for each in request.app.router.routes()
        if each.resource is not None and each.method != "HEAD"
    )
    return web.json_response({"endpoints": overview}, headers={"Vary": "Accept"})


async def _style(_request: web.Request) -> web.Response:
    return _file("page.css", "text/css")


async def _script(_request: web.Request) -> web.Response:
    return _file("page.js", "text/javascript")


async def _icon(_request: web.Request) -> web.Response:
    """Answer that there is no icon; browsers ask for it."""
    return web.Response(status=204)


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
    text = (FOLDER / name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=content_type, headers={**_HEADERS, **(headers or {})})
