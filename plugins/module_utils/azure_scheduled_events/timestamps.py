# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Times as IMDS writes them, independent of this machine's locale and time zone."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

# The day is in ISO 8601 / RFC 3339 ("2016-09-19T18:29:47Z"), or as in mail and HTTP ("Mon, 19 Sep 2016 18:29:47 GMT").
# datetime.fromisoformat reads less before Python 3.11, and email.utils more.
_TIME = re.compile(
    r"(?:(\d{4}-\d{2}-\d{2})[T ]|(?:[a-z]{3,9},? +)?(\d{1,2})[ -]([a-z]{3})[ -](\d{2}|\d{4}) +)"
    r"(\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*(?:GMT|UTC|UT|Z|([+-]\d{2}):?(\d{2}))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parse_not_before(value: Any) -> tuple[datetime | None, str | None]:
    """Return ``NotBefore`` as aware UTC time or None, and a warning or None.

    "" and None mean that no time was given, as for a started event.
    """
    if value is None or value == "":
        return None, None
    if isinstance(value, str):
        time = parse_time(value)
        if time is not None:
            return time, None
    return None, f"NotBefore {value!r} cannot be read; it counts as due now"


def parse_time(text: str) -> datetime | None:
    """Return the aware UTC time of a text, or None if the text is not a time.

    The text is in ISO 8601, or in a format of mail and HTTP ("Mon, 19 Sep 2016 18:29:47 GMT"). Without a zone it is
    UTC; the name of the weekday is not checked.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    try:
        day, number, month, year, clock, hours, minutes = match.groups()
        if day is None:
            day = f"{('20' + year)[-4:]}-{_MONTHS.index(month.lower()) + 1:02d}-{int(number):02d}"
        time = datetime.fromisoformat(f"{day}T{clock}{hours or '+00'}:{minutes or '00'}")
        return time.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def as_utc_text(time: datetime) -> str:
    """Return the time as ISO 8601 in UTC with whole seconds: ``2016-09-19T18:29:47Z``."""
    return time.astimezone(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
