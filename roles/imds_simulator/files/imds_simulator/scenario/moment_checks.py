# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of absolute times against the simulator's clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..moments import is_moment, parse_moment
from ..times import iso
from .yaml_lines import Path

# seconds: a caller that names the present time, in whole minutes too, means now
TOLERANCE = 60.0
# section of a scenario: keys that may be absolute times
MOMENTS = {"events": ("at",), "incarnations": ("at",), "faults": ("from", "to")}


def past_moments(item: Mapping[str, Any], section: str, now: float) -> Iterator[tuple[Path, str]]:
    """Yield a problem for each time of ``item`` that is more than TOLERANCE before ``now``."""
    for key in _keys(item, section):
        if parse_moment(item[key]).unix < now - TOLERANCE:
            yield (key,), f"{item[key]} is in the past: the simulator's clock shows {iso(now)}; write a later time"


def moments_before_begin(item: Mapping[str, Any], section: str) -> Iterator[tuple[Path, str]]:
    """Yield a problem for each time of ``item``, which a scenario with ``begin: first_request`` must not have."""
    for key in _keys(item, section):
        yield (key,), f"{item[key]} is an absolute time; with begin: first_request write a duration since that request"


def _keys(item: Mapping[str, Any], section: str) -> list[str]:
    return [key for key in MOMENTS[section] if is_moment(item.get(key))]
