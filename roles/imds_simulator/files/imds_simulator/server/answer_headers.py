# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The headers of all answers of IMDS (docs/reference/scheduled-events.md 1.4.14)."""

from __future__ import annotations

import uuid

from multidict import CIMultiDict

from ..protocol.responses import Reply
from ..times import http_date

SERVER = "IMDS/150.870.65.2042"


def answer_headers(reply: Reply, moment: float) -> CIMultiDict[str]:
    """Return the headers of ``reply``; ``moment`` is its Date."""
    headers = CIMultiDict(
        {"Server": SERVER, "Date": http_date(int(moment)), "x-ms-request-id": str(uuid.uuid4())},
    )
    if reply.content_type:
        headers["Content-Type"] = reply.content_type
    for name, value in reply.headers:
        headers[name] = value
    return headers
