# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The rules of HTTP that newer versions of aiohttp apply to a request, for the older ones."""

from __future__ import annotations

import re

from aiohttp.http import HttpVersion10, HttpVersion11, RawRequestMessage
from yarl import URL

# that of aiohttp 3.14
MAX_HEADERS = 128
_TOKEN = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-z]+")


def is_valid(message: RawRequestMessage) -> bool:
    """Return True if ``message``, which aiohttp has parsed, is a valid request."""
    names = [name.lower() for name, _value in message.raw_headers]
    hosts = names.count(b"host")
    return (
        message.version in (HttpVersion10, HttpVersion11)
        and len(names) <= MAX_HEADERS
        and all(_TOKEN.fullmatch(name) for name in names)
        and (hosts == 1 or (hosts == 0 and message.version == HttpVersion10))
        and message.headers.get("Transfer-Encoding", "chunked").lower() == "chunked"
        and _is_valid_target(message.path)
    )


def _is_valid_target(target: str) -> bool:
    if not target.isascii():
        return False
    try:
        # a host with a wrong IPv6 address, or a wrong port
        return target.startswith("/") or URL(target).port != 0
    except ValueError:
        return False
