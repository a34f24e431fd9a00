# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Validation of requests: path, method, headers and api-version. Pure.

See docs/reference/scheduled-events.md 1.1 to 1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..api_versions import INSTANCE_VERSIONS, PREVIEW_VERSION, SCHEDULED_EVENTS_VERSIONS, newest
from ..scenario.knobs import Knobs
from .request_target import EVENTS, INSTANCE, ROOT, UNKNOWN, VERSIONS, Target
from .responses import Reply, error, header_error, method_not_allowed, not_found, unknown_version_error, version_error

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
    if not headerless and not _is_metadata_header(request.headers.get("Metadata", "")):
        return header_error(knobs.error_wording)
    return None


def reject_duplicates(target: Target) -> Reply | None:
    """Return the error for a query parameter that occurs twice, or None (reference 1.1.7)."""
    if target.duplicates:
        return error(400, "Bad request. Duplicate query parameters are not allowed")
    return None


def _is_metadata_header(value: str) -> bool:
    return value.strip().lower() == "true"


def _version_error(target: Target, knobs: Knobs) -> Reply | None:
    if target.route == VERSIONS:
        return None
    if target.route in (INSTANCE, ROOT):
        if target.version in INSTANCE_VERSIONS:
            return None
        if target.version and knobs.error_wording == "old":
            return unknown_version_error()
        return version_error(knobs.error_wording, newest(INSTANCE_VERSIONS))
    if target.version in SCHEDULED_EVENTS_VERSIONS or target.version in knobs.extra_api_versions:
        return None
    if target.version and knobs.unknown_version_status == 404:
        return unknown_version_error()
    return version_error(knobs.error_wording, newest(SCHEDULED_EVENTS_VERSIONS + knobs.extra_api_versions))
