# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The acknowledge of a scheduled event by Azure Resource Manager (docs/reference/scheduled-events.md 5.12)."""

from __future__ import annotations

import json
import re
import typing as t
import urllib.parse

# a preview; reference 5.12.1
API_VERSION = "2023-10-01-preview"

APPROVED = "approved"
NOT_FOUND = "not_found"
STARTED = "started"
NOT_DUE = "not_due"
FAILED = "failed"

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SEGMENT = r"[\w.()-]+"
_RESOURCE_ID = re.compile(
    rf"/subscriptions/(?P<subscription>{_SEGMENT})/resourcegroups/(?P<group>{_SEGMENT})/providers/microsoft\.compute"
    rf"/virtualmachines/(?P<name>{_SEGMENT})/?",
    re.IGNORECASE,
)
# not a resource of this name, a parent directory
_DOTS = (".", "..")
_SENT_AGAIN = "the next run sends it again, which does no harm if the first one arrived"
# the same request may succeed a little later
_RETRIED = (-1, 408, 429, 500, 502, 503, 504)
# codes of 404 for which the resource id is wrong; others are about the event
_WRONG_RESOURCE = (
    "SubscriptionNotFound",
    "ResourceGroupNotFound",
    "ResourceNotFound",
    "ParentResourceNotFound",
    "InvalidRequestUri",
)
_MESSAGE_LENGTH = 300
# a line end would be an error of HTTP that shows the token
_TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)


class Outcome(t.NamedTuple):
    """The meaning of an answer: ``outcome`` in the words of module event_approve, and the reason as one sentence."""

    outcome: str
    reason: str


def endpoint_problem(endpoint: str) -> str:
    """Return why the token must not be sent to this base URL, or ""."""
    try:
        url = urllib.parse.urlsplit(endpoint)
        host = url.hostname or ""
    except ValueError:
        return f"{endpoint!r} is not a URL; set it to https://management.azure.com or the address of your cloud"
    if url.scheme not in ("http", "https") or not host or url.query or url.fragment or "@" in url.netloc:
        return f"{endpoint!r} is not a base URL; set it to https://management.azure.com or the address of your cloud"
    if url.scheme == "http" and host not in _LOOPBACK:
        return f"{endpoint} would receive the token without encryption; use https"
    return ""


def vm_of(resource_id: str) -> str:
    """Return the name of the VM of a resource id; raise ValueError if it is not the id of a VM."""
    return _parts_of(resource_id)["name"]


def acknowledge_url(endpoint: str, resource_id: str, event_id: str) -> str:
    """Return the URL to which an approval is sent.

    Args:
        endpoint: base URL of Azure Resource Manager.
        resource_id: of a VM in Resources (reference 5.12.4).
        event_id: EventId.

    Raises:
        ValueError: the resource id is not that of a VM.
    """
    parts = _parts_of(resource_id)
    name, event = (urllib.parse.quote(part, safe="()") for part in (parts["name"], event_id))
    return (
        f"{endpoint.rstrip('/')}/subscriptions/{parts['subscription']}/resourcegroups/{parts['group']}"
        f"/providers/Microsoft.Compute/virtualMachines/{name}"
        f"/providers/Microsoft.Maintenance/scheduledevents/{event}/acknowledge?api-version={API_VERSION}"
    )


def _parts_of(resource_id: str) -> dict[str, str]:
    match = _RESOURCE_ID.fullmatch(resource_id)
    if match is None or any(part in _DOTS for part in match.groups()):
        raise ValueError(
            f"{resource_id!r} is not the ID of a VM; write"
            " /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.Compute/virtualMachines/NAME"
        )
    return match.groupdict()


def token_problem(token: str) -> str:
    """Return why this cannot be a bearer token, without the token, or ""."""
    if not _TOKEN.fullmatch(token):
        return "the token is empty or has characters that no token has; pass the value of accessToken alone"
    return ""


def is_retried(status: int) -> bool:
    """Return True if the same request may succeed a little later; -1 stands for a missing answer."""
    return status in _RETRIED


def outcome_of(status: int, body: str, problem: str) -> Outcome:
    """Return what the answer of Azure Resource Manager means.

    Args:
        status: of HTTP, -1 without an answer.
        body: the content.
        problem: description of the failure, for an answer that has no error of its own.
    """
    if 200 <= status < 300:
        return Outcome(APPROVED, "Azure Resource Manager accepted the approval")
    code, message = _error_in(body)
    said = ": ".join(filter(None, (code, message))) or problem[:_MESSAGE_LENGTH]
    about = (
        f"Azure Resource Manager answered {status} ({said})" if said else f"Azure Resource Manager answered {status}"
    )
    if status == 401:
        return Outcome(FAILED, f"{about}: the token is invalid or has expired; get a new one for maintenance_arm_token")
    if status == 403:
        return Outcome(
            FAILED,
            f"{about}: the identity of the token may not approve; give it the role ScheduledEventContributor,"
            " and check the subscription in maintenance_arm_resource_id",
        )
    if status == 404 and code in _WRONG_RESOURCE:
        return Outcome(FAILED, f"{about}: the VM or the event does not exist; check maintenance_arm_resource_id")
    if status == 404:
        return Outcome(NOT_FOUND, f"{about}: the event is over or was cancelled")
    if status in (409, 412):
        return Outcome(NOT_DUE, f"{about}: the event cannot be approved in its present state")
    if status == -1:
        return Outcome(
            FAILED,
            f"Azure Resource Manager did not answer ({said}): whether it approved is unknown; {_SENT_AGAIN}",
        )
    if is_retried(status):
        return Outcome(FAILED, f"{about}: whether it approved is unknown; {_SENT_AGAIN}")
    return Outcome(FAILED, f"{about}: the request was refused; check maintenance_arm_resource_id and the endpoint")


def changed_since(decision: t.Mapping[str, t.Any], read_again: t.Mapping[str, t.Any]) -> Outcome | None:
    """Return why the decision no longer holds, or None.

    Args:
        decision: with the VMs that are prepared.
        read_again: a later result of module maintenance_info; empty or skipped if the host has not read the events.
    """
    if not read_again or read_again.get("skipped"):
        return None
    if read_again.get("failed") or read_again.get("unreachable") or not read_again.get("available"):
        reason = read_again.get("reason") or read_again.get("msg") or "no reason is known"
        return Outcome(FAILED, f"the event could not be read again before the approval: {reason}")
    key = decision["event_id"].casefold()
    event = next((event for event in read_again["events"] if event["key"] == key), None)
    if event is None:
        return Outcome(NOT_FOUND, "the event is no longer listed")
    if event["status"] != "Scheduled":
        return Outcome(STARTED, "the event has started")
    prepared = {vm.casefold() for vm in decision["resources"]}
    added = [vm for vm in event["resources"] if vm.casefold() not in prepared]
    if added:
        return Outcome(NOT_DUE, f"Azure has added VMs that are not prepared: {', '.join(added)}")
    return None


def _error_in(body: str) -> tuple[str, str]:
    """Return the code and the message of an error of Azure Resource Manager, as far as it has them."""
    try:
        error = json.loads(body)["error"]
        code, message = error.get("code"), error.get("message")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "", ""
    return (
        code[:_MESSAGE_LENGTH] if isinstance(code, str) else "",
        message[:_MESSAGE_LENGTH] if isinstance(message, str) else "",
    )
