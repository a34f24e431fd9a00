# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Replies of Azure Resource Manager to the acknowledge of events (docs/reference/scheduled-events.md 5.12)."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from ..http_reply import Reply, bearer_token, parse_json
from ..model.events import ARM, SimulatedEvent
from ..model.simulation import Simulation
from ..scenario.groups import Vm
from .contract import Result, approved, refused
from .resource_ids import ResourceIds
from .responses import json_reply

PREVIEW = "2023-10-01-preview"
STABLE = "2025-11-01"

# what each version says about an approved event
_APPROVED = {PREVIEW: "Successfully approved scheduled event", STABLE: "Successfully Approved"}
_CHALLENGE = 'Bearer authorization_uri="https://login.microsoftonline.com/", error="invalid_token"'
_PATH = re.compile(
    "(/subscriptions/([^/]+)/resourcegroups/([^/]+)/providers/microsoft[.]compute/([^/]+)/([^/]+))"
    "/providers/microsoft[.]maintenance/scheduledevents(?:/([^/]+)/acknowledge)?",
    re.IGNORECASE,
)


class ArmRequest(NamedTuple):
    """A request to Azure Resource Manager.

    ``path`` is the raw path below its address; ``versions`` are all values of ``api-version``.
    """

    method: str
    path: str
    versions: tuple[str, ...]
    authorization: str


class _Target(NamedTuple):
    """The resource that a path names, and the event to acknowledge; without ``event_id`` the body names the events."""

    resource_id: str
    subscription: str
    group: str
    kind: str
    name: str
    event_id: str | None


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
        return next(iter(self._vms(_target(request.path))), None)

    def reply(self, request: ArmRequest, body: bytes, now: float) -> Result:
        """Return the reply, and approve the events of a valid request; ``now`` is the time of the simulator's clock."""
        target = _target(request.path)
        in_path = [target.event_id] if target is not None and target.event_id else []
        rejection = self._unauthorized(request.authorization) or self._invalid(request, target)
        if rejection is not None:
            return refused(rejection, in_path)
        ids = in_path or _ids_in(body)
        if not ids:
            message = "The request content has no list 'value' of scheduled event ids."
            return refused(arm_error(400, "InvalidRequestContent", message), [])
        found = {each: self._events(each, target) for each in ids}
        if in_path and not found[in_path[0]]:
            return refused(arm_error(404, "NotFound", _not_found(in_path[0])), in_path)
        events = [event for each in found.values() for event in each]
        occurrences = self._simulation.approve(events, ARM, now)
        text = _APPROVED[request.versions[0].lower()]
        reply = json_reply({"value": text}) if all(found.values()) else _multi_status(ids, found, text)
        return approved(reply, ids, events, occurrences)

    def _vms(self, target: _Target | None) -> Sequence[Vm]:
        return self._ids.vms_of(target.resource_id) if target is not None else ()

    def _unauthorized(self, authorization: str) -> Reply | None:
        token, challenge = bearer_token(authorization), (("WWW-Authenticate", _CHALLENGE),)
        if not token:
            message = "Authentication failed. The 'Authorization' header is missing."
            return arm_error(401, "AuthenticationFailed", message, challenge)
        wanted = self.world.knobs.arm_token or self._token
        if wanted and not hmac.compare_digest(token.encode("utf-8", "surrogateescape"), wanted.encode()):
            return arm_error(401, "InvalidAuthenticationToken", "The access token is invalid.", challenge)
        return None

    def _invalid(self, request: ArmRequest, target: _Target | None) -> Reply | None:
        if target is None:
            message = f"No resource of the simulator has the path '{request.path[:200]}'."
            return arm_error(404, "InvalidRequestUri", message)
        if request.method != "POST":
            return _unsupported(request.method)
        if not request.versions or not request.versions[0]:
            message = "The api-version query parameter (?api-version=) is required for all requests."
            return arm_error(400, "MissingApiVersionParameter", message)
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
        if not self._ids.has_resource_group(target.subscription, target.group):
            return arm_error(
                403,
                "AuthorizationFailed",
                "The client does not have authorization to perform action "
                "'Microsoft.Maintenance/scheduledevents/acknowledge/action' over scope "
                f"'/subscriptions/{target.subscription}/resourceGroups/{target.group}' or the scope is invalid.",
            )
        if not self._vms(target):
            return arm_error(
                404,
                "ResourceNotFound",
                f"The Resource 'Microsoft.Compute/{target.kind}/{target.name}' under resource group "
                f"'{target.group}' was not found.",
            )
        return None

    def _events(self, event_id: str, target: _Target | None) -> list[SimulatedEvent]:
        """Return the visible events with that id that affect a VM of ``target``."""
        vms = {vm.name for vm in self._vms(target)}
        return [
            event
            for event in self.world.events
            if event.visible and event.id.upper() == event_id.upper() and vms & set(event.content.resources)
        ]


def arm_error(status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return an error in the shape of Azure Resource Manager."""
    return json_reply({"error": {"code": code, "message": message}}, status, headers)


def _target(path: str) -> _Target | None:
    """Return the parts of an acknowledge path; None for any other path. Fixed parts match in any letter case."""
    match = _PATH.fullmatch("/" + unquote(path.strip("/")))
    return _Target(*match.groups()) if match is not None else None


def _ids_in(body: bytes) -> list[str]:
    """Return the ids of the body of a list; empty if it has none, or others than text."""
    document = parse_json(body)
    ids = document.get("value") if isinstance(document, dict) else None
    return ids if isinstance(ids, list) and all(isinstance(each, str) and each for each in ids) else []


def _multi_status(ids: Sequence[str], found: Mapping[str, Sequence[SimulatedEvent]], text: str) -> Reply:
    """Return the answer to a list of which not each event is approved."""
    details = [
        {
            "target": event_id,
            "code": "OK" if found[event_id] else "NotFound",
            "message": text if found[event_id] else _not_found(event_id),
        }
        for event_id in ids
    ]
    error = {"code": "MultiStatusResponse", "message": "The events have different results.", "details": details}
    return json_reply({"error": error}, 207)


def _not_found(event_id: str) -> str:
    return f"The scheduled event '{event_id[:64]}' was not found."


def _unsupported(method: str) -> Reply:
    message = f"The requested resource does not support http method '{method}'."
    return arm_error(405, "HttpMethodNotSupported", message, (("Allow", "POST"),))
