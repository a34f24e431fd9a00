# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checking data against the shipped JSON Schema, with messages that a person can act on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path as File
from typing import Any

import jsonschema

from ..suggestions import suggestion
from ..times import parse_duration, parse_signed_duration
from .yaml_lines import Path

# Debian 11, Ubuntu 22.04 and EL 9 ship jsonschema 3.2, which does not know the 2020-12 draft by
# name; the schema uses only keywords that mean the same in draft 7
_Validator: Any = getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)
_formats = jsonschema.FormatChecker(formats=())
_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}


@_formats.checks("duration", raises=ValueError)
def _is_duration(value: Any) -> bool:
    """Within the bounds of parse_duration; text or number is the schema's own business."""
    return isinstance(value, (bool, list, dict)) or value is None or parse_duration(value) >= 0


@_formats.checks("signed-duration", raises=ValueError)
def _is_signed_duration(value: Any) -> bool:
    return isinstance(value, (bool, list, dict)) or value is None or math.isfinite(parse_signed_duration(value))


@_formats.checks("finite")
def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    loaded: dict[str, Any] = json.loads((File(__file__).parent / "schema.json").read_text())
    return loaded


def check(data: Any, part: str | None = None) -> list[tuple[Path, str]]:
    """Everything that is wrong with ``data`` as (path, message); ``part`` is a definition of the schema, None all of it."""
    whole = schema()
    wanted = whole if part is None else {"$ref": f"#/$defs/{part}", "$defs": whole["$defs"]}
    found = [
        each for error in _Validator(wanted, format_checker=_formats).iter_errors(data) for each in _explain(error)
    ]
    return sorted(set(found), key=lambda each: [str(part) for part in each[0]])


def _explain(error: Any) -> Iterator[tuple[Path, str]]:
    path = tuple(error.absolute_path)
    kind, value = error.validator, error.instance
    if kind == "additionalProperties" and isinstance(value, dict):
        known = list(error.schema.get("properties", {}))
        for name in value:
            if name not in known:
                yield (
                    (*path, name),
                    "unknown key%s" % (suggestion(name, known) or f"; known are {', '.join(known)}"),
                )
    elif kind == "required":
        # jsonschema reports every missing key by itself, but only in its message
        for name in error.validator_value:
            if name not in value:
                yield path, f"the key {name} is missing"
    elif kind == "enum":
        choices = [str(each) for each in error.validator_value]
        yield path, f"{value!r} is not one of {', '.join(choices)}{suggestion(str(value), choices)}"
    elif kind in ("pattern", "type", "format") and "description" in error.schema:
        yield path, f"{value!r} is not {error.schema['description']}"
    elif kind == "format":
        yield path, f"{value!r} is not a {error.validator_value} number"
    elif kind == "type":
        types = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        yield path, f"{value!r} is not {' or '.join(_TYPE_NAMES[each] for each in types)}"
    else:
        yield path, error.message
