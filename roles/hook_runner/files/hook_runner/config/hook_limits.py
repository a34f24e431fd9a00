# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Limits for single hooks: the keys of `hooks: NAME: unit:`, with names and values as in unit files.

systemd reads the values; `check` asks it whether it accepts them.
"""

from __future__ import annotations

from collections.abc import Mapping

from azure_scheduled_events.options import parse_options

LIMITS = (
    "CPUQuota",
    "CPUWeight",
    "IOWeight",
    "MemoryHigh",
    "MemoryMax",
    "MemorySwapMax",
    "Nice",
    "OOMScoreAdjust",
    "TasksMax",
)


def read_limits(value: object) -> dict[str, str]:
    """Return the limits of a hook's `unit` setting, as texts by name. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping of limits, not {value!r}")
    return parse_options(value, dict.fromkeys(LIMITS, _text))


def _text(value: object) -> str:
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not text.strip() or not text.isprintable():
        raise ValueError(f"expected a text or a number, not {value!r}")
    return text
