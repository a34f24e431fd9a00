# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reads the JSON bodies and the queries of the control API into values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

from aiohttp import web

from ..keys import Path, Problems, keys_of, problem_text, read

_T = TypeVar("_T")
# problems of a value in the running simulator
_Check = Callable[[Any], Iterable[tuple[Path, str]]]


class BadRequest(ValueError):
    """A request to the control API is invalid; the text names the problem."""


async def read_body(request: web.Request, cls: type[_T], check: _Check = lambda value: ()) -> _T:
    """Return the body as a value of ``cls``; ``check`` yields its problems in the running simulator.

    Raises:
        BadRequest: with all problems.
    """
    return read_value(cls, await json_object(request), check)


def read_query(request: web.Request, cls: type[_T], check: _Check = lambda value: ()) -> _T:
    """Return the query of the URL as a value of ``cls``; ``check`` and errors are those of ``read_body``."""
    kind: Any = cls
    keys = keys_of(kind)
    data = {name: keys[name].type.from_text(text) if name in keys else text for name, text in request.query.items()}
    return read_value(cls, data, check)


def read_value(cls: type[_T], data: dict[str, Any], check: _Check) -> _T:
    """Return ``data`` as a value of ``cls``; ``check`` and errors are those of ``read_body``."""
    problems = Problems()
    value = read(cls, data, (), problems)
    if value is not None:
        problems.check(check(value))
    require_none(problems)
    assert value is not None
    return value


def require_none(problems: Problems) -> None:
    """Raise BadRequest with all ``problems``, if there are any."""
    if problems.found:
        raise BadRequest("; ".join(problem_text(path, text) for path, text in problems.found))


async def json_object(request: web.Request) -> dict[str, Any]:
    """Return the JSON object in the body; an empty body is an empty object.

    Raises:
        BadRequest: the body is not such an object.
    """
    try:
        text = await request.text()
    except web.RequestPayloadError:
        raise BadRequest("the body cannot be read; send all of it, and without Content-Encoding") from None
    except (ValueError, LookupError) as error:
        raise BadRequest(f"the body is not text: {error}") from None
    try:
        body: Any = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    return body
