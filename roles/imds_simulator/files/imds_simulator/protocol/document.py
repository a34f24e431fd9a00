# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The scheduled-events document as bytes, per scope and api-version (docs/reference/scheduled-events.md 1.3, 1.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..api_versions import FIELD_SINCE, LATEST_EVENTS_VERSION, PREVIEW_VERSION, SCHEDULED_EVENTS_VERSIONS, TYPE_SINCE
from ..http_reply import Reply
from ..model.events import STARTED, SimulatedEvent
from ..model.world import Scope, World
from ..scenario.groups import Vm
from ..scenario.knobs import Knobs
from ..times import http_date, iso
from .responses import JSON_TYPE, compact


class Document(NamedTuple):
    """The events of a document, and the reply with it."""

    events: tuple[SimulatedEvent, ...]
    reply: Reply


class Documents:
    """Renders documents and caches each until the revision of its scope changes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cache: dict[tuple[str, str], tuple[int, Document]] = {}

    def document(self, scope: Scope, version: str) -> Document:
        """Return the document that members of ``scope`` receive for ``version``."""
        cached = self._cache.get((scope.key, version))
        if cached is not None and cached[0] == scope.revision:
            return cached[1]
        shown_as = version if version in SCHEDULED_EVENTS_VERSIONS else LATEST_EVENTS_VERSION
        world, type_gating = self._world, self._world.knobs.type_gating
        events = [
            event
            for event in world.events_visible_to(scope)
            if type_gating == "show" or TYPE_SINCE.get(event.content.type, "") <= shown_as
        ]
        underscore = shown_as == PREVIEW_VERSION and not world.groups[scope.group].is_classic
        members = [_member(event, world.vms, world.knobs, shown_as, "_" if underscore else "") for event in events]
        body = compact({"DocumentIncarnation": scope.incarnation, "Events": members})
        # a tag of the content: the incarnation can have the same value again after a reset
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        # a change of the knob is a new revision, too
        headers = (("ETag", etag),) if world.knobs.etag else ()
        fresh = Document(tuple(events), Reply(200, body, JSON_TYPE, headers))
        self._cache[scope.key, version] = (scope.revision, fresh)
        return fresh


def _member(event: SimulatedEvent, vms: Mapping[str, Vm], knobs: Knobs, version: str, prefix: str) -> dict[str, Any]:
    names = [prefix + vms[name].resource_name for name in event.content.resources]
    members = event.content.members(event.id, event.status, _not_before(event, knobs), names)
    extra = event.content.extra
    return {name: value for name, value in members.items() if name in extra or FIELD_SINCE.get(name, "") <= version}


def _not_before(event: SimulatedEvent, knobs: Knobs) -> str:
    if event.status == STARTED:
        return ""
    if event.content.not_before is not None:
        return event.content.not_before
    if knobs.not_before_format == "iso":
        return iso(event.not_before).replace(".000Z", "Z")
    return http_date(event.not_before)
