# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Durations as scenarios write them (90, "30s", "15m", "2h", "5d", "1h30m"), and points in time as text."""

from __future__ import annotations

import re
import time
from email.utils import formatdate

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+|\d+(?:\.\d+)?")
# a hundred years: longer than any scenario, short enough for dates to stay representable
_LONGEST = 100 * 365 * 86400.0
# the last second of the year 9999: later ones have no RFC 1123 form
_LAST_DATE = 253402300799.0


def parse_signed_duration(value: int | float | str) -> float:
    """As parse_duration, for lengths of time that may begin with a minus sign."""
    text = str(value)
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(value)


def parse_duration(value: int | float | str) -> float:
    """Simulated seconds for ``value``; ValueError for anything that is not a length of time."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r} is not a duration")
    if isinstance(value, str):
        text = value.strip().lower()
        if not _WHOLE.fullmatch(text):
            raise ValueError(f"{value!r} is not a duration (write seconds, or 30s, 15m, 2h, 5d)")
        seconds = (
            float(text)
            if text[-1].isdigit()
            else sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        )
    else:
        seconds = float(value)
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(f"{value!r} is not a duration between 0 and 100 years")
    return seconds


def iso(moment: float) -> str:
    """ISO 8601 UTC with milliseconds."""
    milliseconds = round(moment * 1000)
    return "%s.%03dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)), milliseconds % 1000)


def http_date(moment: float) -> str:
    """RFC 1123 in GMT with English names under any locale (docs/reference/scheduled-events.md 2.3.1)."""
    return formatdate(min(moment, _LAST_DATE), usegmt=True)
