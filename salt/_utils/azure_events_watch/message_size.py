# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Limits for what a beacon sends in one tick. Pure.

A minion that sends about 200 kB in one tick hangs for ever.
"""

from __future__ import annotations

import json
from typing import Any, Mapping

# bytes of JSON in one tick
MAX_BYTES = 64 * 1024
# events in one tick
MAX_EVENTS = 100
# bytes of JSON in one text
_MAX_TEXT_BYTES = 4096


def fit_to_tick(data: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the data of one event, reduced to fit into one tick, and their size in bytes.

    Long texts are truncated, and ``cut`` names them. Too many resources are replaced by
    ``resources_omitted``, their number.
    """
    fitting = dict(data)
    size = _size(fitting)
    if size <= _MAX_TEXT_BYTES:
        return fitting, size
    cut = []
    for name, value in data.items():
        if isinstance(value, str) and _size(value) > _MAX_TEXT_BYTES:
            fitting[name] = _truncate(value)
            cut.append(name)
    if cut:
        fitting["cut"] = cut
    size = _size(fitting)
    if size > MAX_BYTES and "resources" in fitting:
        fitting["resources_omitted"] = len(fitting.pop("resources"))
        size = _size(fitting)
    return fitting, size


def _truncate(text: str) -> str:
    while _size(text) > _MAX_TEXT_BYTES:
        text = text[: min(len(text) - 1, len(text) * _MAX_TEXT_BYTES // _size(text))]
    return text


def _size(value: Any) -> int:
    """Return the bytes of the JSON text, in which a character beyond ASCII is an escape."""
    return len(json.dumps(value))
