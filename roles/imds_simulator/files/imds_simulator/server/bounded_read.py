# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reads the body of a request, or of the answer to one, up to a limit."""

from __future__ import annotations

import aiohttp


async def read_at_most(content: aiohttp.StreamReader, size: int) -> bytes:
    """Return the whole body, or the first ``size`` bytes of a longer one."""
    body = b""
    # one read returns the bytes that have arrived, not the whole body
    while len(body) < size:
        part = await content.read(size - len(body))
        if not part:
            break
        body += part
    return body
