# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The replies of Azure Resource Manager to the acknowledge of an event. Pure except for the world.

See docs/reference/scheduled-events.md 5.12.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from ..model import operations
from ..model.events import ARM, STARTED, SimulatedEvent
from ..model.simulation import Simulation
from ..scenario.groups import Vm
from .arm_target import Acknowledge, parse_acknowledge
from .contract import Result
from .resource_ids import ResourceIds
from .responses import Reply, json_reply

API_VERSIONS = ("2023-10-01-preview",)

_CHALLENGE = 'Bearer authorization_uri="https://login.microsoftonline.com/", error="invalid_token"'


class ArmRequest(NamedTuple):
    """A request to Azure Resource Manager.

    ``path`` is the raw path below its address; ``versions`` are all values of ``api-version``.
    """

    method: str
    path: str
    versions: tuple[str, ...]
    authorization: str


class ArmContract:
    """Answers requests to Azure Resource Manager from the state of the world.

    Args:
        simulation: the world.
        ids: the resource ids of its VMs.
        token: the bearer token that requests need while the knob ``arm_token`` is empty; empty: any.
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
        """Return the reply, and approve the event if the request is valid.

        Args:
            request: the request.
            now: the time of the simulator's clock.
        """
        target = parse_acknowledge(request.path)
        rejection = self._unauthorized(request.authorization) or self._invalid(request, target)
        if rejection is not None or target is None:
            return _refused(rejection or _no_such_path(request), target)
        events = self._events(target)
        if isinstance(events, Reply):
            return _refused(events, target)
        status = self.world.knobs.acknowledge_started_status
        if status != 200 and all(event.status == STARTED for event in events):
            return _refused(arm_error(status, "EventAlreadyStarted", "The scheduled event has started."), target)
        occurrences = operations.approve(self._simulation, events, ARM, now)
        note = {"ids": [target.event_id[:64]], "new": [each.event for each in occurrences]}
        return Result(json_reply({"value": "Successfully approved scheduled event"}), occurrences, note)

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
            message = f"The requested resource does not support http method '{request.method}'."
            return arm_error(405, "HttpMethodNotSupported", message, (("Allow", "POST"),))
        if not request.versions or not request.versions[0]:
            return arm_error(
                400,
                "MissingApiVersionParameter",
                "The api-version query parameter (?api-version=) is required for all requests.",
            )
        if len(request.versions) > 1 or request.versions[0].lower() not in API_VERSIONS:
            return arm_error(
                400,
                "InvalidResourceType",
                "The resource type 'scheduledevents' could not be found in the namespace 'Microsoft.Maintenance' for "
                f"api version '{request.versions[-1][:32]}'. "
                f"The supported api-versions are '{', '.join(API_VERSIONS)}'.",
            )
        if target.group.folded() not in self._ids.resource_groups:
            return arm_error(
                403,
                "AuthorizationFailed",
                "The client does not have authorization to perform action "
                "'Microsoft.Maintenance/scheduledevents/acknowledge/action' "
                f"over scope '{target.group.id}' or the scope is invalid.",
            )
        return None

    def _events(self, target: Acknowledge) -> list[SimulatedEvent] | Reply:
        """Return the visible events with that id that affect the resource, or the error."""
        vms = self._ids.vms_of(target.group, target.kind, target.name)
        if not vms:
            return arm_error(
                404,
                "ResourceNotFound",
                f"The Resource 'Microsoft.Compute/{target.kind}/{target.name}' under resource group "
                f"'{target.group.name}' was not found.",
            )
        names = {vm.name for vm in vms}
        found = [
            event
            for event in self.world.events
            if event.visible and event.id.upper() == target.event_id.upper() and names & set(event.content.resources)
        ]
        return found or arm_error(404, "NotFound", f"The scheduled event '{target.event_id}' was not found.")


def arm_error(status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return an error in the shape of Azure Resource Manager."""
    return json_reply(arm_error_body(code, message), status, headers)


def arm_error_body(code: str, message: str) -> Mapping[str, object]:
    """Return the body of an error in the shape of Azure Resource Manager."""
    return {"error": {"code": code, "message": message}}


def _unauthorized(code: str, message: str) -> Reply:
    return arm_error(401, code, message, (("WWW-Authenticate", _CHALLENGE),))


def _no_such_path(request: ArmRequest) -> Reply:
    return arm_error(404, "InvalidRequestUri", f"No resource of the simulator has the path '{request.path[:200]}'.")


def _refused(reply: Reply, target: Acknowledge | None) -> Result:
    ids = [target.event_id[:64]] if target is not None else []
    return Result(reply, [], {"ids": ids, "refused": reply.body.decode()[:200]})
