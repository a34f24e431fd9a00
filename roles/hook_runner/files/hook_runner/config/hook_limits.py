# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Limits for single hooks: the keys of `hooks: NAME: unit:`, with names and values as in unit files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from azure_scheduled_events.options import Parser, parse_integer, parse_options

INFINITY = (1 << 64) - 1

# name and D-Bus type of each limit
LIMITS: Mapping[str, tuple[str, str]] = {
    "CPUQuota": ("CPUQuotaPerSecUSec", "t"),
    "CPUWeight": ("CPUWeight", "t"),
    "IOWeight": ("IOWeight", "t"),
    "MemoryHigh": ("MemoryHigh", "t"),
    "MemoryMax": ("MemoryMax", "t"),
    "MemorySwapMax": ("MemorySwapMax", "t"),
    "Nice": ("Nice", "i"),
    "OOMScoreAdjust": ("OOMScoreAdjust", "i"),
    "TasksMax": ("TasksMax", "t"),
}


def read_limits(value: object) -> dict[str, int]:
    """Return the limits of a hook's `unit` setting, as numbers by name. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping of limits, not {value!r}")
    return parse_options(value, _PARSERS)


def _bytes(value: object) -> int:
    match = re.fullmatch(r"(\d+)([KMGT]?)", str(value))
    if value == "infinity":
        return INFINITY
    if match is None or isinstance(value, bool):
        raise ValueError(f"expected bytes such as 512M or 2G, or infinity, not {value!r}")
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


def _percent(value: object) -> int:
    match = re.fullmatch(r"(\d{1,6})%", str(value))
    if match is None or not int(match[1]):
        raise ValueError(f"expected a share of one processor such as 50%, not {value!r}")
    return int(match[1]) * 10000


def _tasks(value: object) -> int:
    return INFINITY if value == "infinity" else parse_integer(value, 1, 1 << 22)


_PARSERS: Mapping[str, Parser] = {
    "CPUQuota": _percent,
    "CPUWeight": partial(parse_integer, least=1, most=10000),
    "IOWeight": partial(parse_integer, least=1, most=10000),
    "MemoryHigh": _bytes,
    "MemoryMax": _bytes,
    "MemorySwapMax": _bytes,
    "Nice": partial(parse_integer, least=-20, most=19),
    "OOMScoreAdjust": partial(parse_integer, least=-1000, most=1000),
    "TasksMax": _tasks,
}
