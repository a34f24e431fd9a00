# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Control API routes of the live page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aiohttp import web

PAGE_ROUTES = web.RouteTableDef()
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


@PAGE_ROUTES.get("/")
async def _index(request: web.Request) -> web.Response:
    """Answer with the page to browsers, and with a list of the routes to other clients."""
    # browsers name it without a quality, which prefers it
    if "text/html" in [each.strip() for each in request.headers.get("Accept", "").lower().split(",")]:
        return _file("page.html", "text/html", {"Vary": "Accept"})
    overview = sorted(
        f"{each.method} {each.resource.canonical}"
        for each in request.app.router.routes()
        if each.resource is not None and each.method != "HEAD"
    )
    return web.json_response({"endpoints": overview}, headers={"Vary": "Accept"})


@PAGE_ROUTES.get("/page.css")
@PAGE_ROUTES.get("/page.js")
async def _style_or_script(request: web.Request) -> web.Response:
    return _file(request.path[1:], "text/css" if request.path.endswith(".css") else "text/javascript")


@PAGE_ROUTES.get("/favicon.ico")
async def _icon(_request: web.Request) -> web.Response:
    """Answer that there is no icon; browsers ask for it."""
    return web.Response(status=204)


def _file(name: str, content_type: str, headers: Mapping[str, str] | None = None) -> web.Response:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=content_type, headers={**_HEADERS, **(headers or {})})
