# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Validation of requests: path, method, headers, api-version (docs/reference/scheduled-events.md 1.1 to 1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..api_versions import INSTANCE_VERSIONS, PREVIEW_VERSION, SCHEDULED_EVENTS_VERSIONS, newest
from ..http_reply import Reply
from ..scenario.knobs import Knobs
from .request_target import EVENTS, INSTANCE, ROOT, UNKNOWN, VERSIONS, Target
from .responses import error, header_error, json_reply, method_not_allowed, not_found

_VERSION_ERROR = {
    "new": "Bad request. api-version is invalid or was not specified in the request. "
    "For more information refer to aka.ms/azureimds",
    "old": "Bad request. api-version was not specified in the request. For more information refer to aka.ms/azureimds",
}
_METHODS = {EVENTS: ("GET", "POST"), INSTANCE: ("GET",), VERSIONS: ("GET",), ROOT: ("GET",)}


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
        return header_error(knobs.error_wording)
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
    return json_reply({"error": _VERSION_ERROR[knobs.error_wording], "newest-versions": newest(known)}, 400)
