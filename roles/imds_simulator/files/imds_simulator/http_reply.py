# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""An HTTP reply as a value."""

from __future__ import annotations

from typing import NamedTuple


class Reply(NamedTuple):
    """Status, body, content type and further headers; without content type no Content-Type is sent."""

    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()
