# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Limits for single hooks: the keys of `hooks: NAME: unit:`, with names and values as in unit files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Callable

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
    found = {}
    for name, given in value.items():
        if name not in LIMITS:
            raise ValueError(f"unknown limit {name!r}; these are known: {', '.join(LIMITS)}")
        try:
            found[name] = _PARSERS[name](given)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


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
    return INFINITY if value == "infinity" else _integer(1, 1 << 22)(value)


class _integer:
    """Reads a whole number between two others."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most

    def __call__(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not self._least <= value <= self._most:
            raise ValueError(f"expected a whole number from {self._least} to {self._most}, not {value!r}")
        return value


_PARSERS: Mapping[str, Callable[[object], int]] = {
    "CPUQuota": _percent,
    "CPUWeight": _integer(1, 10000),
    "IOWeight": _integer(1, 10000),
    "MemoryHigh": _bytes,
    "MemoryMax": _bytes,
    "MemorySwapMax": _bytes,
    "Nice": _integer(-20, 19),
    "OOMScoreAdjust": _integer(-1000, 1000),
    "TasksMax": _tasks,
}
