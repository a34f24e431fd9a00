# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses request targets, with a cache, and validates requests (docs/reference/scheduled-events.md 1.1 to 1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl

from ..api_versions import INSTANCE_VERSIONS, PREVIEW_VERSION, SCHEDULED_EVENTS_VERSIONS
from ..http_reply import Reply
from ..scenario.answers import Answer
from ..scenario.knobs import Knobs
from .responses import error, json_reply, method_not_allowed, not_found

EVENTS = "scheduledevents"
INSTANCE = "instance"
VERSIONS = "versions"
# /metadata itself
ROOT = "metadata"
UNKNOWN = "unknown"

_HEADER_ERROR = {
    "new": "Bad request. Required metadata header not specified",
    "old": "Bad request: . Required metadata header not specified",
}
_VERSION_ERROR = {
    "new": "Bad request. api-version is invalid or was not specified in the request. "
    "For more information refer to aka.ms/azureimds",
    "old": "Bad request. api-version was not specified in the request. For more information refer to aka.ms/azureimds",
}
_METHODS = {EVENTS: ("GET", "POST"), INSTANCE: ("GET",), VERSIONS: ("GET",), ROOT: ("GET",)}


class Target(NamedTuple):
    """A parsed request target.

    Route, path below it, query, and properties that the contract checks. ``answers`` are those of the
    scenario for this path.
    """

    route: str
    below: tuple[str, ...]
    query: Mapping[str, str]
    duplicates: bool
    answers: tuple[Answer, ...] = ()

    @property
    def version(self) -> str | None:
        """The ``api-version``, None when it is missing."""
        return self.query.get("api-version")


@lru_cache(maxsize=4096)
def parse_target(raw: str) -> Target:
    """Parse ``/metadata[/ROUTE[/BELOW]][/][?QUERY]`` in any letter case; escapes in the path are not decoded."""
    path, _mark, query_text = raw.partition("?")
    pairs = parse_qsl(query_text, keep_blank_values=True)
    names = [name.lower() for name, _value in pairs]
    trailing = len(path) > 1 and path.endswith("/")
    parts = (path[:-1] if trailing else path).split("/")
    route, below = UNKNOWN, ()  # type: str, tuple[str, ...]
    if parts[0] == "" and parts[1:] and parts[1].lower() == "metadata" and "" not in parts[2:]:
        name = parts[2].lower() if len(parts) > 2 else ""
        if not name:
            route = ROOT
        elif name == INSTANCE or (name in (EVENTS, VERSIONS) and len(parts) == 3):
            route, below = name, tuple(parts[3:])
    return Target(route, below, {name.lower(): value for name, value in pairs}, len(set(names)) < len(names))


@dataclass(frozen=True)
class Request:
    """One request; names in ``headers`` are case-insensitive."""

    method: str
    target: Target
    headers: Mapping[str, str]


def reject(request: Request, knobs: Knobs) -> Reply | None:
    """Return the error for an invalid request, or None for a valid one. The header comes first (reference 1.2.9)."""
    target = request.target
    rejection = reject_headers(request, knobs)
    if rejection is not None:
        return rejection
    if target.route == UNKNOWN:
        return not_found()
    if request.method not in _METHODS[target.route]:
        return method_not_allowed(_METHODS[target.route])
    return reject_duplicates(target) or _version_error(target, knobs)


def reject_headers(request: Request, knobs: Knobs) -> Reply | None:
    """Return the error for headers that IMDS does not accept, or None (reference 1.2)."""
    if "X-Forwarded-For" in request.headers:
        return error(knobs.xff_status, "Bad request. X-Forwarded-For header is not allowed")
    headerless = request.target.route == EVENTS and request.target.version == PREVIEW_VERSION
    if not headerless and request.headers.get("Metadata", "").strip().lower() != "true":
        return error(400, _HEADER_ERROR[knobs.error_wording])
    return None


def reject_duplicates(target: Target) -> Reply | None:
    """Return the error for a query parameter that occurs twice, or None (reference 1.1.7)."""
    if target.duplicates:
        return error(400, "Bad request. Duplicate query parameters are not allowed")
    return None


def _version_error(target: Target, knobs: Knobs) -> Reply | None:
    if target.route == VERSIONS:
        return None
    is_events = target.route == EVENTS
    known = SCHEDULED_EVENTS_VERSIONS + knobs.extra_api_versions if is_events else INSTANCE_VERSIONS
    if target.version in known:
        return None
    # some services list no versions for one that they do not know (reference 1.6.11)
    lists_none = knobs.unknown_version_status == 404 if is_events else knobs.error_wording == "old"
    if target.version and lists_none:
        return error(404, "Not found. Invalid version requested")
    newest = sorted(known, reverse=True)[:3]
    return json_reply({"error": _VERSION_ERROR[knobs.error_wording], "newest-versions": newest}, 400)
