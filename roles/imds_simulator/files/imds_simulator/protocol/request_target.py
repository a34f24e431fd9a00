# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses request targets, with a cache (docs/reference/scheduled-events.md 1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl

from ..scenario.answers import Answer

EVENTS = "scheduledevents"
INSTANCE = "instance"
VERSIONS = "versions"
# /metadata itself
ROOT = "metadata"
UNKNOWN = "unknown"


class Target(NamedTuple):
    """A parsed request target.

    Route, path below it, query, and properties that the contract checks. ``answers`` are those of the
    scenario for this path.
    """

    route: str
    below: tuple[str, ...]
    query: Mapping[str, str]
    duplicates: bool
    answers: tuple[Answer, ...] = ()

    @property
    def version(self) -> str | None:
        """The ``api-version``, None when it is missing."""
        return self.query.get("api-version")


@lru_cache(maxsize=4096)
def parse_target(raw: str) -> Target:
    """Parse ``/metadata[/ROUTE[/BELOW]][/][?QUERY]`` in any letter case; escapes in the path are not decoded."""
    path, _mark, query_text = raw.partition("?")
    pairs = parse_qsl(query_text, keep_blank_values=True)
    names = [name.lower() for name, _value in pairs]
    trailing = len(path) > 1 and path.endswith("/")
    parts = (path[:-1] if trailing else path).split("/")
    route, below = UNKNOWN, ()  # type: str, tuple[str, ...]
    if parts[0] == "" and parts[1:] and parts[1].lower() == "metadata" and "" not in parts[2:]:
        name = parts[2].lower() if len(parts) > 2 else ""
        if not name:
            route = ROOT
        elif name == INSTANCE or (name in (EVENTS, VERSIONS) and len(parts) == 3):
            route, below = name, tuple(parts[3:])
    return Target(route, below, {name.lower(): value for name, value in pairs}, len(set(names)) < len(names))
