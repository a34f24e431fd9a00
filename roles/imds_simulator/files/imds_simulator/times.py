# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses durations (90, "30s", "15m", "2h", "5d", "1h30m") and absolute times (ISO 8601), and formats them."""

from __future__ import annotations

import re
import time
from datetime import datetime
from email.utils import formatdate
from typing import NamedTuple, Union

DURATION = "a duration: a number of seconds, or text like 30s, 15m, 2h, 5d, 1h30m"
DURATION_PATTERN = r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+|\d+(?:\.\d+)?"

_UNITS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")
# a hundred years: longer durations could lead to dates that cannot be represented
_MAX_DURATION = 100 * 365 * 86400.0
# the last second of the year 9999: later ones have no form that clients can read
_LAST_DATE = 253402300799.0
_MOMENT_BEGINNING = re.compile(r"\d{4}-\d{1,2}-\d")
# older versions of datetime.fromisoformat read neither Z, +0100 and +01, nor fractions of any length
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(?:(:\d\d)(?:[.,](\d+))?)?(?:Z|([+-]\d\d)(?::?([0-5]\d))?)", re.ASCII
)
_MOMENT_FORM = "write a time such as 2030-01-31T12:00:00Z or 2030-01-31T13:00:00+01:00"


class Moment(NamedTuple):
    """A Unix time of the simulator's clock."""

    unix: float

    def __str__(self) -> str:
        return iso(self.unix)


# simulated seconds since another moment, or a moment
When = Union[float, Moment]


def parse_signed_duration(value: int | float | str) -> float:
    """Parse a duration that may begin with a minus sign, as parse_duration."""
    try:
        if str(value).startswith("-"):
            return -parse_duration(value[1:] if isinstance(value, str) else -value)
        return parse_duration(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a duration that may begin with a minus sign, such as -20m") from None


def parse_duration(value: int | float | str) -> float:
    """Return the seconds of ``value``: a number, or text such as "30s" or "1h30m".

    Raises:
        ValueError: ``value`` is not a duration between 0 and 100 years.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r} is not {DURATION}")
    seconds: float
    if isinstance(value, str):
        text = value.strip().lower()
        if not re.fullmatch(DURATION_PATTERN, text):
            raise ValueError(f"{value!r} is not {DURATION}")
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    else:
        seconds = value
    if not 0 <= seconds <= _MAX_DURATION:
        raise ValueError(f"{value!r} is not a duration between 0 and 100 years")
    # a whole number can be too large for a float; it is compared before
    return float(seconds)


def parse_moment(text: str) -> Moment:
    """Return an absolute time.

    Raises:
        ValueError: ``text`` is not a time, or has no time of day or no zone.
    """
    match = _MOMENT.fullmatch(text.strip().upper())
    if match is None:
        raise ValueError(f"{text!r} is not a time with a time zone; {_MOMENT_FORM}")
    minute, second, fraction, zone_hours, zone_minutes = match.groups()
    try:
        whole = datetime.fromisoformat(f"{minute}{second or ':00'}{zone_hours or '+00'}:{zone_minutes or '00'}")
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: {error}; {_MOMENT_FORM}") from None
    return Moment(whole.timestamp() + float(f"0.{fraction or 0}"))


def parse_when(value: int | float | str) -> When:
    """Return a duration in seconds, or an absolute time; raise ValueError if ``value`` is neither."""
    if isinstance(value, str) and _MOMENT_BEGINNING.match(value.strip()):
        return parse_moment(value)
    try:
        return parse_duration(value)
    except ValueError:
        raise ValueError(f"{value!r} is not {DURATION}; or a time like 2030-01-31T12:00:00Z") from None


def duration_text(seconds: float) -> str:
    """Return a duration as parse_duration reads it, such as 4m59s."""
    parts = []
    for unit in ("d", "h", "m"):
        count, seconds = divmod(seconds, _UNITS[unit])
        parts += [f"{count:g}{unit}"] if count else []
    return "".join(parts + ([f"{seconds:g}s"] if seconds or not parts else []))


def iso(moment: float) -> str:
    """Return a Unix time as ISO 8601 in UTC with milliseconds, at most the end of the year 9999."""
    milliseconds = round(min(moment, _LAST_DATE) * 1000)
    return "%s.%03dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)), milliseconds % 1000)


def http_date(moment: float) -> str:
    """Return a Unix time as RFC 1123 date, English in any locale (docs/reference/scheduled-events.md 2.3.1)."""
    return formatdate(min(moment, _LAST_DATE), usegmt=True)
