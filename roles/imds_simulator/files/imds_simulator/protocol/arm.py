# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The replies of Azure Resource Manager to the acknowledge of events. Pure except for the world.

See docs/reference/scheduled-events.md 5.12.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from ..model import operations
from ..model.events import ARM, SimulatedEvent
from ..model.simulation import Simulation
from ..scenario.groups import Vm
from .arm_target import Acknowledge, parse_acknowledge
from .contract import Result
from .resource_ids import ResourceIds
from .responses import Reply, json_reply

PREVIEW = "2023-10-01-preview"
STABLE = "2025-11-01"

# what each version says about an approved event
_APPROVED = {PREVIEW: "Successfully approved scheduled event", STABLE: "Successfully Approved"}
_CHALLENGE = 'Bearer authorization_uri="https://login.microsoftonline.com/", error="invalid_token"'


class ArmRequest(NamedTuple):
    """A request to Azure Resource Manager.

    ``path`` is the raw path below its address; ``versions`` are all values of ``api-version``.
    """

    method: str
    path: str
    versions: tuple[str, ...]
    authorization: str
    body: bytes = b""


class _Refusal(NamedTuple):
    """Why an event is not approved."""

    status: int
    code: str
    message: str


class ArmContract:
    """Answers requests to Azure Resource Manager from the state of the world.

    ``token`` is the bearer token that requests need while the knob ``arm_token`` is empty; empty: any.
    """

    def __init__(self, simulation: Simulation, ids: ResourceIds, token: str) -> None:
        self.world = simulation.world
        self._simulation = simulation
        self._ids = ids
        self._token = token

    def vm(self, request: ArmRequest) -> Vm | None:
        """Return the first VM that the path of ``request`` names, if any."""
        target = parse_acknowledge(request.path)
        vms = self._ids.vms_of(target.group, target.kind, target.name) if target is not None else ()
        return vms[0] if vms else None

    def reply(self, request: ArmRequest, now: float) -> Result:
        """Return the reply, and approve the events of a valid request; ``now`` is the time of the simulator's clock."""
        target = parse_acknowledge(request.path)
        rejection = self._unauthorized(request.authorization) or self._invalid(request, target)
        if rejection is not None or target is None:
            return _refused(rejection or _no_such_path(request), target)
        ids = [target.event_id] if target.event_id else _ids_in(request.body)
        if isinstance(ids, Reply):
            return _refused(ids, target)
        return self._approve(target, ids, _APPROVED[request.versions[0].lower()], now)

    def _approve(self, target: Acknowledge, ids: list[str], approved: str, now: float) -> Result:
        names = {vm.name for vm in self._ids.vms_of(target.group, target.kind, target.name)}
        found = {event_id: self._events(event_id, names) for event_id in ids}
        refusals = {event_id: each for event_id, each in found.items() if isinstance(each, _Refusal)}
        if refusals and target.event_id:
            return _refused(arm_error(*refusals[target.event_id]), target)
        events = [event for each in found.values() if not isinstance(each, _Refusal) for event in each]
        occurrences = operations.approve(self._simulation, events, ARM, now)
        note = {"ids": [event_id[:64] for event_id in ids], "new": [each.event for each in occurrences]}
        reply = _multi_status(ids, refusals, approved) if refusals else json_reply({"value": approved})
        return Result(reply, occurrences, note)

    def _unauthorized(self, authorization: str) -> Reply | None:
        scheme, _space, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            message = "Authentication failed. The 'Authorization' header is missing."
            return _unauthorized("AuthenticationFailed", message)
        wanted = self.world.knobs.arm_token or self._token
        if wanted and not hmac.compare_digest(token.strip().encode("utf-8", "surrogateescape"), wanted.encode()):
            return _unauthorized("InvalidAuthenticationToken", "The access token is invalid.")
        return None

    def _invalid(self, request: ArmRequest, target: Acknowledge | None) -> Reply | None:
        if target is None:
            return _no_such_path(request)
        if request.method != "POST":
            return _unsupported(request.method)
        if not request.versions or not request.versions[0]:
            return arm_error(
                400,
                "MissingApiVersionParameter",
                "The api-version query parameter (?api-version=) is required for all requests.",
            )
        supported = (PREVIEW, STABLE) if self.world.knobs.arm_stable_version else (PREVIEW,)
        version = request.versions[-1].lower()
        if len(request.versions) > 1 or version not in supported:
            return arm_error(
                400,
                "InvalidResourceType",
                "The resource type 'scheduledevents' could not be found in the namespace 'Microsoft.Maintenance' for "
                f"api version '{request.versions[-1][:32]}'. "
                f"The supported api-versions are '{', '.join(supported)}'.",
            )
        if version == PREVIEW and not target.event_id:
            return _unsupported(request.method)
        if target.group.folded() not in self._ids.resource_groups:
            return arm_error(
                403,
                "AuthorizationFailed",
                "The client does not have authorization to perform action "
                "'Microsoft.Maintenance/scheduledevents/acknowledge/action' "
                f"over scope '{target.group.id}' or the scope is invalid.",
            )
        if not self._ids.vms_of(target.group, target.kind, target.name):
            return arm_error(
                404,
                "ResourceNotFound",
                f"The Resource 'Microsoft.Compute/{target.kind}/{target.name}' under resource group "
                f"'{target.group.name}' was not found.",
            )
        return None

    def _events(self, event_id: str, vms: set[str]) -> list[SimulatedEvent] | _Refusal:
        """Return the visible events with that id that affect one of the VMs, or why they are not approved."""
        found = [
            event
            for event in self.world.events
            if event.visible and event.id.upper() == event_id.upper() and vms & set(event.content.resources)
        ]
        if not found:
            return _Refusal(404, "NotFound", f"The scheduled event '{event_id[:64]}' was not found.")
        return found


def arm_error(status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return an error in the shape of Azure Resource Manager."""
    return json_reply(arm_error_body(code, message), status, headers)


def arm_error_body(code: str, message: str) -> Mapping[str, object]:
    """Return the body of an error in the shape of Azure Resource Manager."""
    return {"error": {"code": code, "message": message}}


def _ids_in(body: bytes) -> list[str] | Reply:
    """Return the ids of the body of a list, or the error."""
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    ids = document.get("value") if isinstance(document, dict) else None
    if not isinstance(ids, list) or not ids or not all(isinstance(each, str) and each for each in ids):
        return arm_error(
            400, "InvalidRequestContent", "The request content has no list 'value' of scheduled event ids."
        )
    return ids


def _multi_status(ids: list[str], refusals: Mapping[str, _Refusal], approved: str) -> Reply:
    """Return the answer to a list of which not each event is approved."""
    answers = ((each, refusals.get(each, _Refusal(200, "OK", approved))) for each in ids)
    details = [
        {"target": each, "code": HTTPStatus(answer.status).phrase.replace(" ", ""), "message": answer.message}
        for each, answer in answers
    ]
    error = {"code": "MultiStatusResponse", "message": "The events have different results.", "details": details}
    return json_reply({"error": error}, HTTPStatus.MULTI_STATUS)


def _unsupported(method: str) -> Reply:
    message = f"The requested resource does not support http method '{method}'."
    return arm_error(405, "HttpMethodNotSupported", message, (("Allow", "POST"),))


def _unauthorized(code: str, message: str) -> Reply:
    return arm_error(401, code, message, (("WWW-Authenticate", _CHALLENGE),))


def _no_such_path(request: ArmRequest) -> Reply:
    return arm_error(404, "InvalidRequestUri", f"No resource of the simulator has the path '{request.path[:200]}'.")


def _refused(reply: Reply, target: Acknowledge | None) -> Result:
    ids = [target.event_id[:64]] if target is not None and target.event_id else []
    return Result(reply, [], {"ids": ids, "refused": reply.body.decode()[:200]})
