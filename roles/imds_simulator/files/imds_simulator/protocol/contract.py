# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The replies to valid requests. Pure except for the world. See docs/reference/scheduled-events.md 1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..api_versions import INSTANCE_VERSIONS
from ..http_reply import Reply
from ..instance_metadata.document import InstanceDocuments
from ..model.events import Occurrence, SimulatedEvent
from ..model.simulation import Simulation
from ..scenario.groups import Vm
from .document import Documents
from .instance_lookup import element
from .request import ROOT, VERSIONS, Request
from .responses import JSON_TYPE, error, json_reply, not_found

# bytes of the body of an approval
_MAX_BODY = 65536


class Result(NamedTuple):
    """The reply to an approval, the occurrences that it caused, and ``note`` for the log."""

    reply: Reply
    occurrences: Sequence[Occurrence]
    note: Mapping[str, object]


class ImdsContract:
    """Answers valid requests from the state of the world."""

    def __init__(self, simulation: Simulation) -> None:
        self.world = simulation.world
        self.documents = Documents(self.world)
        self._simulation = simulation
        self._instances = InstanceDocuments(self.world.groups.values())

    def metadata(self, request: Request, vm: Vm) -> Reply:
        """Return the reply to ``/metadata``, ``/metadata/instance`` and ``/metadata/versions``."""
        if request.target.route == ROOT:
            return not_found()
        if request.target.route == VERSIONS:
            return json_reply({"apiVersions": list(INSTANCE_VERSIONS)})
        return element(self._instances.document(vm.name, request.target.version or ""), request.target)

    def events(self, request: Request, vm: Vm) -> Reply:
        """Return the document (reference 1.4), or 304 when the client has the present one (reference 1.2.7)."""
        reply = self.documents.document(self.world.scope_for(vm), request.target.version or "").reply
        known = request.headers.get("If-None-Match", "")
        # a document has no other header than ETag
        if any(known.strip() == "*" or etag in known for _name, etag in reply.headers):
            return Reply(304, headers=reply.headers)
        return reply

    def approve(self, request: Request, vm: Vm, body: bytes, now: float) -> Result:
        """Approve events as reference 1.5 describes; ``now`` is the time of the simulator's clock."""
        knobs = self.world.knobs
        try:
            ids = _event_ids(body)
        except ValueError as problem:
            return refused(error(400, f"Bad request. {problem}"), [])
        found = self.world.approvable(vm, ids)
        unknown = [each for each in ids if not found[each]]
        if unknown:
            mixed = len(unknown) < len(ids)
            mixed_status = 200 if knobs.partial_batch == "apply_valid" else 400
            status = mixed_status if mixed else knobs.unknown_event_status
            if status != 200:
                return refused(error(status, f"Bad request. Unknown event id {unknown[0]}"), ids)
        events = [event for each in ids for event in found[each]]
        occurrences = self._simulation.approve(events, vm.name, now)
        if knobs.post_body == "document":
            return approved(self.events(Request("GET", request.target, {}), vm), ids, events, occurrences)
        return approved(Reply(200, b"", JSON_TYPE), ids, events, occurrences)


def approved(
    reply: Reply, ids: Sequence[str], events: Sequence[SimulatedEvent], occurrences: Sequence[Occurrence]
) -> Result:
    """Return the result of an approval by ``ids``; one that is repeated, or late, leaves an event unchanged."""
    new = [each.event for each in occurrences]
    unchanged = sorted({each.name for each in events}.difference(new))
    return Result(reply, occurrences, {"ids": _loggable(ids), "new": new, "unchanged": _loggable(unchanged)})


def refused(reply: Reply, ids: Sequence[str]) -> Result:
    """Return the result of an approval that is refused with ``reply``."""
    return Result(reply, (), {"ids": _loggable(ids), "refused": reply.body.decode()[:200]})


def _loggable(ids: Sequence[str]) -> list[str]:
    """Return the part of ``ids`` that the log keeps, which bounds its memory."""
    return [each[:64] for each in ids[:20]]


def _event_ids(body: bytes) -> list[str]:
    """Return the ids of ``{"StartRequests":[{"EventId":"..."}]}`` in order; other members are ignored (reference 1.5).

    Raises:
        ValueError: the body is too long, or anything else; the text names the reason.
    """
    if len(body) > _MAX_BODY:
        raise ValueError("The request body is larger than MaxBodyLength")
    if not body:
        raise ValueError("The request body is empty")
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("The request body is not valid JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("StartRequests"), list):
        raise ValueError("The request body has no list StartRequests")
    if not document["StartRequests"]:
        raise ValueError("StartRequests is empty")
    ids: list[Any] = [
        request.get("EventId") if isinstance(request, dict) else None for request in document["StartRequests"]
    ]
    if not all(isinstance(each, str) and each for each in ids):
        raise ValueError("A start request has no EventId")
    return ids
