# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Times as IMDS writes them, independent of this machine's locale and time zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?"
_ZONE = r"(?P<zone>GMT|UTC|UT|Z|[+-]\d{2}:?\d{2})"
# characters; a search in a text of megabytes takes a second
_LONGEST = 200
# RFC 1123 and RFC 822 ("Mon, 19 Sep 2016 18:29:47 GMT"), RFC 850 ("Monday, 19-Sep-16 18:29:47 GMT")
_DATE = r"(?P<day>\d{1,2})[ -](?P<month>[A-Za-z]{3})[ -](?P<year>\d{4}|\d{2})"
_WORDED = rf"(?:[A-Za-z]{{3,9}},?\s+)?{_DATE}\s+{_CLOCK}\s*{_ZONE}?"
# ISO 8601 / RFC 3339 ("2016-09-19T18:29:47Z")
_ISO = rf"(?P<year>\d{{4}})-(?P<month>\d{{2}})-(?P<day>\d{{2}})[T ]{_CLOCK}\s*{_ZONE}?"


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

    The text has any of the formats that IMDS and HTTP servers use. Without a zone it is UTC; the name of the weekday
    is not checked.
    """
    time = _usual(text)
    if time is not None or len(text) > _LONGEST:
        return time
    # compiled when first used, because that is slow; re caches the results
    match = re.fullmatch(_WORDED, text.strip(), re.IGNORECASE) or re.fullmatch(_ISO, text.strip(), re.IGNORECASE)
    if match is None:
        return None
    part = match.groupdict()
    month = int(part["month"]) if part["month"].isdigit() else _MONTHS.get(part["month"].lower())
    year = int(part["year"])
    if len(part["year"]) == 2:
        year += 2000 if year < 70 else 1900
    try:
        local = datetime(
            year,
            month or 0,
            int(part["day"]),
            int(part["hour"]),
            int(part["minute"]),
            int(part["second"] or 0),
            tzinfo=timezone.utc,
        )
        return local - _offset(part["zone"])
    except (ValueError, OverflowError):
        return None


def _usual(text: str) -> datetime | None:
    """Read the format of HTTP servers, ``Mon, 19 Sep 2016 18:29:47 GMT``, fast: each answer has such a date."""
    if len(text) != 29 or text[25:] != " GMT" or not text.isascii():
        return None
    if text[3:5] != ", " or text[7] != " " or text[11] != " " or text[16] != " " or text[19] != ":" or text[22] != ":":
        return None
    digits = text[5:7] + text[12:16] + text[17:19] + text[20:22] + text[23:25]
    month = _MONTHS.get(text[8:11].lower())
    if not (digits.isdigit() and text[:3].isalpha() and month):
        return None
    try:
        return datetime(
            int(digits[2:6]),
            month,
            int(digits[:2]),
            int(digits[6:8]),
            int(digits[8:10]),
            int(digits[10:]),
            0,
            timezone.utc,
        )
    except ValueError:
        return None


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone[0] not in "+-":
        return timedelta(0)
    digits = zone[1:].replace(":", "")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if zone[0] == "-" else size


def as_utc_text(time: datetime) -> str:
    """Return the time as ISO 8601 in UTC with whole seconds: ``2016-09-19T18:29:47Z``."""
    utc = time.astimezone(timezone.utc)
    # not strftime: years below 1000 lose their leading zeros there
    return f"{utc.year:04d}-{utc.month:02d}-{utc.day:02d}T{utc.hour:02d}:{utc.minute:02d}:{utc.second:02d}Z"
