# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A reply to an HTTP request, the texts of headers, and bodies in JSON."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

# the characters that RFC 9110 allows in the name of a header
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# a tab is the only control character that a value may have
_CONTROL = re.compile(r"[\0-\x08\x0a-\x1f\x7f\ud800-\udfff]")


class Reply(NamedTuple):
    """Status, body, content type and further headers; without content type no Content-Type is sent."""

    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()


def is_header_name(text: str) -> bool:
    """Return True if ``text`` is allowed as the name of a header."""
    return _TOKEN.fullmatch(text) is not None


def is_header_value(text: str) -> bool:
    """Return True if a header can have the value ``text``: after a line break the rest would be another header."""
    return _CONTROL.search(text) is None


def bearer_token(authorization: str) -> str:
    """Return the bearer token of the header Authorization; empty if it has none."""
    scheme, _space, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def parse_json(data: bytes) -> Any:
    """Return the value of ``data``; None if it is not JSON, or is nested too deeply."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
