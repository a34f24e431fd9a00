# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Where and how notifications of Event Grid are published: the key ``notify`` of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..header_text import is_header_name, is_header_value
from ..times import parse_duration

EVENT_GRID = "eventgrid"
CLOUD_EVENTS = "cloudevents"


@dataclass(frozen=True)
class Notify:
    """The settings of publishing.

    ``duplicates`` is the share of notifications that are sent twice. ``disorder`` is the longest
    random delay of a notification in simulated seconds. ``seed``: None makes each run different.
    ``attempts`` is the largest number of requests for one notification. ``validate``: the web hook
    has to pass the handshake first.
    """

    url: str
    schema: str = EVENT_GRID
    headers: Mapping[str, str] = field(default_factory=dict)
    duplicates: float = 0.0
    disorder: float = 0.0
    seed: int | None = None
    attempts: int = 5
    validate: bool = False


def notify_problems(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the problems that the schema does not find, as (key, message)."""
    if "url" not in data:
        yield "url", "the key url is missing; notifications need the address of a web hook"
    elif not _is_web_address(data["url"]):
        yield "url", f"{data['url']!r} is not an http or https address"
    for name, value in data.get("headers", {}).items():
        if not is_header_name(name):
            yield "headers", f"{name!r} is not the name of a header"
        elif not is_header_value(str(value)):
            yield "headers", f"the value of {name} has more than one line, or a control character"
    token = data.get("token", "x")
    if not token.isascii() or not token.isprintable() or " " in token:
        yield "token", "a token has ASCII characters only, without spaces and line breaks"


def notify_from(data: Mapping[str, Any]) -> Notify:
    """Return the settings that checked ``data`` describes."""
    headers = {name: str(value) for name, value in data.get("headers", {}).items()}
    if "token" in data:
        headers["Authorization"] = f"Bearer {data['token']}"
    return Notify(
        url=data["url"],
        schema=data.get("schema", EVENT_GRID),
        headers=headers,
        duplicates=float(data.get("duplicates", 0)),
        disorder=parse_duration(data.get("disorder", 0)),
        seed=data.get("seed"),
        attempts=data.get("attempts", 5),
        validate=data.get("validate", False),
    )


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        return False
