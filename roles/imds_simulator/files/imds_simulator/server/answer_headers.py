# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The headers of all answers of IMDS (docs/reference/scheduled-events.md 1.4.14)."""

from __future__ import annotations

import random

from multidict import CIMultiDict

from ..protocol.responses import Reply
from ..times import http_date

SERVER = "IMDS/150.870.65.2042"


class AnswerHeaders:
    """Makes the headers; keeps the text of the present second."""

    def __init__(self) -> None:
        self._date: tuple[int, str] = (0, "")
        self._random = random.Random()

    def of(self, reply: Reply, moment: float) -> CIMultiDict[str]:
        """Return the headers of ``reply``; ``moment`` is its Date."""
        headers = CIMultiDict({"Server": SERVER, "Date": self.date(moment), "x-ms-request-id": self.request_id()})
        if reply.content_type:
            headers["Content-Type"] = reply.content_type
        for name, value in reply.headers:
            headers[name] = value
        return headers

    def date(self, moment: float) -> str:
        """Return the value of Date at ``moment``."""
        second = int(moment)
        if second != self._date[0]:
            self._date = (second, http_date(second))
        return self._date[1]

    def request_id(self) -> str:
        """Return a random UUID; uuid.uuid4 takes four times as long, because it asks the kernel."""
        # the version 4 and the variant 2 of RFC 4122
        bits = self._random.getrandbits(128) & ~(0xF << 76 | 0x3 << 62) | (0x4 << 76 | 0x2 << 62)
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
