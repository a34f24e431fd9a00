# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Replies in JSON, and the errors of the service (docs/reference/scheduled-events.md 1.6)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..http_reply import Reply

JSON_TYPE = "application/json; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"


def compact(value: Any) -> bytes:
    """Return JSON as IMDS writes it: no spaces, members in the given order (reference 1.4.2)."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")


def json_reply(value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return a reply with ``value`` as JSON."""
    return Reply(status, compact(value), JSON_TYPE, headers)


def error(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return an error in the general shape (reference 1.6)."""
    return json_reply({"error": message}, status, headers)


def not_found() -> Reply:
    """Return the error for a path that does not exist (reference 1.6)."""
    return error(404, "Not found. The requested path does not exist")


def method_not_allowed(methods: Iterable[str]) -> Reply:
    """Return the error for another method than those of the path (reference 1.6)."""
    allowed = ", ".join(dict.fromkeys(methods))
    return error(405, "Method not allowed. Http method isn't allowed for this path", (("Allow", allowed),))
