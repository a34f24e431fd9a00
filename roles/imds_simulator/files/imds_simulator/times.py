# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Durations as people write them: 90, "30s", "15m", "2h", "5d", "1h30m"."""
from __future__ import annotations

import re
from typing import Union

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+|\d+(?:\.\d+)?")
# a hundred years: longer than any scenario, short enough for dates to stay representable
_LONGEST = 100 * 365 * 86400.0


def parse_signed_duration(value: Union[int, float, str]) -> float:
    """As parse_duration, for lengths of time that may begin with a minus sign."""
    text = str(value)
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(value)


def parse_duration(value: Union[int, float, str]) -> float:
    """Simulated seconds for ``value``; ValueError for anything that is not a length of time."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("%r is not a duration" % (value,))
    if isinstance(value, str):
        text = value.strip().lower()
        if not _WHOLE.fullmatch(text):
            raise ValueError("%r is not a duration (write seconds, or 30s, 15m, 2h, 5d)" % value)
        seconds = float(text) if text[-1].isdigit() else sum(
            float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    else:
        seconds = float(value)
    if not 0 <= seconds <= _LONGEST:
        raise ValueError("%r is not a duration between 0 and 100 years" % (value,))
    return seconds
