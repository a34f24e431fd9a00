# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Texts of the report: escaped names, moments and durations."""

from __future__ import annotations

import html
import time
from collections.abc import Sequence


def escaped(text: object) -> str:
    """Return ``text`` for HTML and SVG; characters that cannot be printed become U+FFFD."""
    return html.escape("".join(each if each.isprintable() else "\ufffd" for each in str(text)), quote=True)


def shortened(text: str, length: int) -> str:
    """Return ``text`` with at most ``length`` characters."""
    return text if len(text) <= length else text[: length - 1] + "\u2026"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first ``most`` names, and how many there are beyond them."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(number: int, noun: str) -> str:
    """Return ``number`` with ``noun`` in the singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def utc(moment: float, *, day: bool = False) -> str:
    """Return the time of day in UTC with milliseconds, after the date if ``day``."""
    milliseconds = round(moment * 1000)
    form = "%Y-%m-%d %H:%M:%S" if day else "%H:%M:%S"
    return "%s.%03d" % (time.strftime(form, time.gmtime(milliseconds // 1000)), milliseconds % 1000)


def duration(seconds: float) -> str:
    """Return ``seconds`` as text such as 4.25 s, 3 min 05.0 s, 2 h 05 min."""
    sign, total = ("-" if seconds < -0.0005 else ""), abs(seconds)
    if total < 60 - 0.005:
        return f"{sign}{total:.2f} s"
    if total < 3600 - 0.05:
        minutes, rest = divmod(round(total, 1), 60)
        return f"{sign}{minutes:.0f} min {rest:04.1f} s"
    minutes, rest = divmod(round(total), 60)
    if minutes < 1440:
        return f"{sign}{minutes // 60} h {minutes % 60:02d} min {rest:02d} s"
    return f"{sign}{minutes // 1440} d {minutes // 60 % 24} h {minutes % 60:02d} min"


def offset(seconds: float) -> str:
    """Return a time relative to the first event, with its sign."""
    return duration(seconds) if seconds < -0.0005 else "+" + duration(seconds)
