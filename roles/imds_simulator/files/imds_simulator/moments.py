# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses absolute times: ISO 8601 and the timestamps of YAML, with a time zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, Union

from .times import DURATION, iso, parse_duration

_BEGINNING = re.compile(r"\d{4}-\d{1,2}-\d")
_WHOLE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[Tt]|[ \t]+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
    r"[ \t]*(?:([Zz])|([+-])(\d{1,2})(?::?([0-5]\d))?)?)?"
)
_FORM = "write a time such as 2030-01-31T12:00:00Z or 2030-01-31T13:00:00+01:00"


class Moment(NamedTuple):
    """A Unix time of the simulator's clock, and simulated seconds ``later``."""

    unix: float
    later: float = 0.0

    def __str__(self) -> str:
        return iso(self.unix)


# simulated seconds since another moment, or a moment
When = Union[float, Moment]


def parse_moment(text: str) -> Moment:
    """Return an absolute time.

    Raises:
        ValueError: ``text`` is not a time, or has no time of day or no zone.
    """
    match = _WHOLE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time; {_FORM}")
    year, month, day, hour, minute, second, fraction, utc, sign, zone_hours, zone_minutes = match.groups()
    if hour is None:
        raise ValueError(f"{text!r} has no time of day; {_FORM}")
    if utc is None and sign is None:
        raise ValueError(f"{text!r} has no time zone; {_FORM}")
    offset = timedelta(hours=int(zone_hours or 0), minutes=int(zone_minutes or 0)) * (-1 if sign == "-" else 1)
    try:
        zone = timezone(offset)
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=zone)
        moment = local.timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a time: {error}; {_FORM}") from None
    return Moment(moment + float(f"0.{fraction or 0}"))


def parse_when(value: int | float | str) -> When:
    """Return a duration in seconds, or an absolute time; raise ValueError if ``value`` is neither."""
    if isinstance(value, str) and _BEGINNING.match(value.strip()):
        return parse_moment(value)
    try:
        return parse_duration(value)
    except ValueError:
        raise ValueError(f"{value!r} is not {DURATION}; or a time like 2030-01-31T12:00:00Z") from None
