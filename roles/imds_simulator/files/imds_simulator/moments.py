# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses absolute times: ISO 8601 with a time zone."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple, Union

from .times import DURATION, iso, parse_duration

_BEGINNING = re.compile(r"\d{4}-\d{1,2}-\d")
# older versions of datetime.fromisoformat read neither Z, +0100 and +01, nor fractions of any length
_WHOLE = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(?:(:\d\d)(?:[.,](\d+))?)?(?:Z|([+-]\d\d)(?::?([0-5]\d))?)", re.ASCII
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
    match = _WHOLE.fullmatch(text.strip().upper())
    if match is None:
        raise ValueError(f"{text!r} is not a time with a time zone; {_FORM}")
    minute, second, fraction, zone_hours, zone_minutes = match.groups()
    try:
        whole = datetime.fromisoformat(f"{minute}{second or ':00'}{zone_hours or '+00'}:{zone_minutes or '00'}")
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: {error}; {_FORM}") from None
    return Moment(whole.timestamp() + float(f"0.{fraction or 0}"))


def parse_when(value: int | float | str) -> When:
    """Return a duration in seconds, or an absolute time; raise ValueError if ``value`` is neither."""
    if isinstance(value, str) and _BEGINNING.match(value.strip()):
        return parse_moment(value)
    try:
        return parse_duration(value)
    except ValueError:
        raise ValueError(f"{value!r} is not {DURATION}; or a time like 2030-01-31T12:00:00Z") from None
