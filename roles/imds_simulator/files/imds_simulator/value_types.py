# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The types of values that the keys of a scenario have."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any, Callable

from .api_versions import EVENT_TYPES
from .http_reply import is_header_name, is_header_value
from .keys import Path, Problems, Type, list_of, scalar
from .suggestions import suggestion
from .times import DURATION_PATTERN, parse_duration, parse_signed_duration, parse_when

# all readers of JSON have whole numbers up to this one; Python refuses to write longer ones than its limit
MAX_NUMBER = 2**53 - 1
_SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def text(
    what: str = "text", pattern: str = "", parse: Callable[[str], Any] = str, metavar: str = "TEXT", least: int = 0
) -> Type:
    """Return the type of texts of ``least`` characters that match the whole ``pattern``; ``parse`` makes the value."""
    matches = re.compile(pattern or ".*", re.DOTALL).fullmatch

    def parse_text(value: Any) -> Any:
        if not isinstance(value, str) or len(value) < least or not matches(value):
            raise ValueError
        return parse(value)

    schema: dict[str, Any] = {"type": "string", **({"minLength": least} if least else {})}
    if pattern:
        schema["pattern"] = f"^({pattern})$"
    return scalar(what, parse_text, schema, metavar)


def integer(least: int, most: int = MAX_NUMBER, what: str = "") -> Type:
    """Return the type of whole numbers from ``least`` to ``most``."""

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError
        return value

    schema = {"type": "integer", "minimum": least, "maximum": most}
    what = what or f"a whole number from {least} to {most}"
    return scalar(what, parse, schema, "NUMBER", _json_or_text)


def number(what: str, accept: Callable[[float], bool], schema: Mapping[str, Any]) -> Type:
    """Return the type of finite numbers that ``accept`` accepts."""

    def parse(value: Any) -> float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # a whole number can be too large for a float
        if not is_number or not abs(value) <= sys.float_info.max or not accept(value):
            raise ValueError
        return float(value)

    return scalar(what, parse, {"type": "number", **schema}, "NUMBER", _json_or_text)


def one_of(*choices: Any, metavar: str = "") -> Type:
    """Return the type of values that are one of ``choices``."""
    shown = [str(each) for each in choices]

    def parse(value: Any) -> Any:
        if value not in choices or isinstance(value, bool):
            raise ValueError(f"{value!r} is not one of {', '.join(shown)}{suggestion(str(value), shown)}")
        return value

    by_text = {str(each).lower(): each for each in choices}
    return scalar(
        "", parse, {"enum": list(choices)}, metavar or "|".join(shown), lambda given: by_text.get(given.lower(), given)
    )


def switchable(type_: Type, words: Mapping[bool, Any], what: str) -> Type:
    """Return ``type_`` with the values true and false, as far as ``words`` has what they mean."""

    def read(value: Any, path: Path, problems: Problems) -> Any:
        if isinstance(value, bool) and value in words:
            return words[value]
        found = Problems()
        result = type_.read(value, path, found)
        if found.found:
            problems.add(path, f"{value!r} is not {what}")
        return result

    def from_text(given: str) -> Any:
        return switch if (switch := _SWITCH.get(given.lower())) in words else type_.from_text(given)

    return Type(read, {"anyOf": [type_.schema, {"enum": list(words)}]}, type_.metavar, from_text)


def _duration(parse: Callable[[Any], Any], pattern: str) -> Type:
    # each error of ``parse`` has a text
    return scalar("", parse, {"type": ["number", "string"], "pattern": f"^({pattern})$"}, "DURATION")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _json_object(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("JSON has no binary data, NaN or infinity; write text") from None
    return value


def _body(value: str) -> bytes:
    # JSON may have half of a pair, which UTF-8 has not
    return value.encode(errors="backslashreplace")


def _base64(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise ValueError("not base64") from None


def _header_value(value: str) -> str:
    if not is_header_value(value):
        raise ValueError("the text has more than one line, or a control character")
    return value


def _token(value: str) -> str:
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("a token has ASCII characters only, without spaces and line breaks")
    return value


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError
    for name, each in value.items():
        if isinstance(each, bool) or not isinstance(each, (str, int, float)):
            raise ValueError(f"the value of {name} is not text or a number")
    return {name: str(each) for name, each in value.items()}


def _headers(value: Any) -> dict[str, str]:
    headers = _texts(value)
    for name, each in headers.items():
        if not is_header_name(name):
            raise ValueError(f"{name!r} is not the name of a header")
        if not is_header_value(each):
            raise ValueError(f"the value of {name} has more than one line, or a control character")
        # the libraries for HTTP convert it
        if name.lower() == "content-length" and not re.fullmatch("[0-9]{1,18}", each):
            raise ValueError(f"the value of {name} is not a number of bytes")
    return headers


TEXT = text()
NAME = text("text of at least one character", metavar="NAME", least=1)
BOOLEAN = scalar(
    "true or false, on or off", _boolean, {"type": "boolean"}, "on|off", lambda given: _SWITCH.get(given.lower(), given)
)
DURATION = _duration(parse_duration, DURATION_PATTERN)
SIGNED_DURATION = _duration(parse_signed_duration, f"-?({DURATION_PATTERN})")
WHEN = _duration(parse_when, rf"{DURATION_PATTERN}|\s*\d{{4}}-\d{{1,2}}-\d.*")
NAMES = list_of(NAME, least=1, unique=True)
NAME_OR_NAMES = dataclasses.replace(
    NAMES,
    read=lambda value, path, problems: NAMES.read([value] if isinstance(value, str) else value, path, problems),
    schema={"anyOf": [NAME.schema, NAMES.schema]},
)
EVENT_TYPE = one_of(*EVENT_TYPES)
JSON_OBJECT = scalar("a mapping", _json_object, {"type": "object"}, "JSON", _json_or_text)
BODY = text(parse=_body)
BASE64 = text(parse=_base64, metavar="BASE64")
TOKEN = text(parse=_token, metavar="TOKEN")
HEADER_VALUE = text(parse=_header_value)
HOLD = switchable(DURATION, {True: math.inf, False: 0.0}, "a duration, or true for 'until released or NotBefore'")
_TEXTS_SCHEMA = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
TEXTS = scalar("a mapping", _texts, _TEXTS_SCHEMA, "JSON", _json_or_text)
HEADERS = scalar("a mapping", _headers, _TEXTS_SCHEMA, "JSON", _json_or_text)
