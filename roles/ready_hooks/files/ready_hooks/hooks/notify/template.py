# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Templates: JSON, or a text, with placeholders such as {event_type}.

A value never becomes a part of the structure: a mapping or a list is filled before it is encoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ready_hooks.core import report
from ready_hooks.core.options import did_you_mean

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")
_MOST_DEPTH = 30


def body(value: object) -> Any:
    """Return a template: a mapping, a list, or a text, which may be JSON. Raises ValueError."""
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except ValueError:
            found = value
        value = found if isinstance(found, (dict, list)) else value
    if not isinstance(value, (str, dict, list)) or not value:
        raise ValueError(f"expected a mapping, a list or a text, not {value!r}")
    _check(value, _MOST_DEPTH)
    return value


def text(value: object) -> str:
    """Return a template that is a text. Raises ValueError."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a text, not {value!r}")
    _check(value, 0)
    return value


def fill(template: Any, values: Mapping[str, report.Value]) -> Any:
    """Return the template with values in place of its placeholders.

    A text that is one placeholder and nothing else becomes its value, also a number or null.
    `{{word}}` becomes `{word}`.
    """
    if isinstance(template, dict):
        return {fill_text(name, values): fill(each, values) for name, each in template.items()}
    if isinstance(template, list):
        return [fill(each, values) for each in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    return values[whole[2]] if whole and whole[2] else fill_text(template, values)


def fill_text(template: str, values: Mapping[str, report.Value]) -> str:
    """Return the text with values in place of its placeholders; an unknown number is empty."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "{" + match[1] + "}"
        found = values[match[2]]
        return "" if found is None else str(found)

    return _PLACEHOLDER.sub(value, template)


def _check(template: Any, depth: int) -> None:
    if isinstance(template, str):
        for match in _PLACEHOLDER.finditer(template):
            if match[2] and match[2] not in report.NAMES:
                problem = f"no value {match[0]}; write {{{match[0]}}} for the word itself"
                raise ValueError(problem + did_you_mean(match[2], report.NAMES))
    elif isinstance(template, (dict, list)):
        if depth == 0:
            raise ValueError("it is nested too deep")
        for each in [*template, *template.values()] if isinstance(template, dict) else template:
            _check(each, depth - 1)
