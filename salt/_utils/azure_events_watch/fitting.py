# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""How much a beacon sends at once. A minion that sends some 200 kB in one tick waits for itself, for ever. Pure."""

from __future__ import annotations

import json
from typing import Any, Mapping

# bytes of JSON in one tick
PER_TICK = 64 * 1024
# events in one tick
AT_ONCE = 100
# bytes of JSON of one text
_LONGEST_TEXT = 4096


def fitted(data: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The data of one event such that they fit into a tick, and their bytes.

    Long texts are cut, and ``cut`` names them; resources that are too much are replaced by
    ``resources_omitted``, their number.
    """
    fitting = dict(data)
    size = _size(fitting)
    if size <= _LONGEST_TEXT:
        return fitting, size
    cut = []
    for name, value in data.items():
        if isinstance(value, str) and _size(value) > _LONGEST_TEXT:
            fitting[name] = _cut(value)
            cut.append(name)
    if cut:
        fitting["cut"] = cut
    size = _size(fitting)
    if size > PER_TICK and "resources" in fitting:
        fitting["resources_omitted"] = len(fitting.pop("resources"))
        size = _size(fitting)
    return fitting, size


def _cut(text: str) -> str:
    while _size(text) > _LONGEST_TEXT:
        text = text[: min(len(text) - 1, len(text) * _LONGEST_TEXT // _size(text))]
    return text


def _size(value: Any) -> int:
    """Bytes of JSON; a character beyond ASCII counts with its escape."""
    return len(json.dumps(value))
