# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks data against the shipped JSON Schema. Each message names the problem and the known values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path as File
from typing import Any

import jsonschema

from ..moments import is_moment, parse_when
from ..suggestions import suggestion
from ..times import parse_duration, parse_signed_duration
from .yaml_lines import Path

# jsonschema 3.2 of Debian 11, Ubuntu 22.04 and EL 9 does not have the 2020-12 draft; the schema uses
# only keywords with the same meaning in draft 7
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
    """Check the bounds of parse_duration; the schema itself checks the type."""
    return isinstance(value, (bool, list, dict)) or value is None or parse_duration(value) >= 0


@_formats.checks("when", raises=ValueError)
def _is_when(value: Any) -> bool:
    if not isinstance(value, (bool, list, dict)) and value is not None:
        parse_when(value)
    return True


@_formats.checks("signed-duration", raises=ValueError)
def _is_signed_duration(value: Any) -> bool:
    return isinstance(value, (bool, list, dict)) or value is None or math.isfinite(parse_signed_duration(value))


@_formats.checks("finite")
def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files."""
    loaded: dict[str, Any] = json.loads((File(__file__).parent / "schema.json").read_text(encoding="utf-8"))
    return loaded


def check(data: Any, part: str | None = None) -> list[tuple[Path, str]]:
    """Return the problems of ``data`` as (path, message), sorted.

    ``part`` is the definition of the schema that ``data`` must fit; None: the whole schema.
    """
    whole = schema()
    wanted = whole if part is None else {"$ref": f"#/$defs/{part}", "$defs": whole["$defs"]}
    found = [
        each for error in _Validator(wanted, format_checker=_formats).iter_errors(data) for each in _explain(error)
    ]
    return sorted(set(found), key=lambda each: [str(part) for part in each[0]])


def _explain(error: Any) -> Iterator[tuple[Path, str]]:
    path, kind = tuple(error.absolute_path), error.validator
    if kind == "additionalProperties" and isinstance(error.instance, dict):
        yield from _unknown_keys(error, path)
    elif kind == "required":
        # jsonschema reports every missing key by itself, but only in its message
        yield from (
            (path, f"the key {name} is missing") for name in error.validator_value if name not in error.instance
        )
    else:
        yield path, _value_problem(error)


def _unknown_keys(error: Any, path: Path) -> Iterator[tuple[Path, str]]:
    known = list(error.schema.get("properties", {}))
    for name in error.instance:
        if name not in known:
            hint = suggestion(name, known) or f"; known keys: {', '.join(known)}"
            yield (*path, name), f"unknown key{hint}"


def _value_problem(error: Any) -> str:
    kind, value = error.validator, error.instance
    if kind == "enum":
        choices = [str(each) for each in error.validator_value]
        return f"{value!r} is not one of {', '.join(choices)}{suggestion(str(value), choices)}"
    if kind == "format" and is_moment(value):
        return str(error.cause)
    if kind in ("pattern", "type", "format") and "description" in error.schema:
        return f"{value!r} is not {error.schema['description']}"
    if kind == "format":
        return f"{value!r} is not a {error.validator_value} number"
    if kind == "type":
        types = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        return f"{value!r} is not {' or '.join(_TYPE_NAMES[each] for each in types)}"
    return str(error.message)
