# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reads and checks the JSON bodies of the control API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from ..scenario.schema_check import check
from ..scenario.yaml_lines import Path, dotted
from ..suggestions import suggestion


class BadRequest(ValueError):
    """A request to the control API is invalid; the text names the problem."""


async def json_object(
    request: web.Request, allowed: set[str] | None = None, required: set[str] | None = None
) -> dict[str, Any]:
    """Return the JSON object in the body; an empty body is an empty object.

    ``allowed`` are the known keys; None: any. The keys ``required`` must be present.

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
    for name in body:
        if allowed is not None and name not in allowed:
            raise BadRequest(f"unknown key {name}{suggestion(name, allowed)}")
    for name in sorted(required or ()):
        if name not in body:
            raise BadRequest(f"the key {name} is missing")
    return body


def validate(data: Any, part: str, extra_problems: Iterable[tuple[Path, str]]) -> None:
    """Check ``data`` against ``part`` of the scenario schema, a definition such as "event".

    ``extra_problems`` are pairs (path, message) from checks beyond the schema. It is read only when ``data`` fits the
    schema: such checks rely on that.

    Raises:
        BadRequest: with all problems.
    """
    problems = check(data, part) or list(extra_problems)
    if problems:
        raise BadRequest("; ".join(problem_text(path, text) for path, text in problems))


def problem_text(path: Path, text: str) -> str:
    """Return a problem as ``KEY: PROBLEM``."""
    return f"{dotted(path) + ': ' if path else ''}{text}"
