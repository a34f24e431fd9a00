# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The acknowledge of a scheduled event by Azure Resource Manager (docs/reference/scheduled-events.md 5.12)."""

from __future__ import annotations

import json
import re
import typing as t
import urllib.parse
from http import HTTPStatus

from ...module_utils.azure_scheduled_events import release
from ...module_utils.azure_scheduled_events.identity import vm_key
from ...module_utils.azure_scheduled_events.printable import printable
from .vm_hosts import sighting_of

API_VERSION = "2025-11-01"
# without the list of events; reference 5.12.1
PREVIEW_API_VERSION = "2023-10-01-preview"

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
_SENT_AGAIN = "another attempt or the next run sends it again, which does no harm if the first one arrived"
# the same request may succeed a little later
_TEMPORARY = (408, 429, 500, 502, 503, 504)
# statuses that say something about the event of the request
_ABOUT_AN_EVENT = (404, 409, 412)
# codes of 404 for which the resource id is wrong; others are about the event
_WRONG_RESOURCE = (
    "SubscriptionNotFound",
    "ResourceGroupNotFound",
    "ResourceNotFound",
    "ParentResourceNotFound",
    "InvalidRequestUri",
)
# codes for a version or an operation that Azure Resource Manager does not have
_UNKNOWN_VERSION = ("InvalidApiVersionParameter", "InvalidResourceType", "NoRegisteredProviderFound")
# how the answer to a list writes the status of one event: NotFound
_STATUS_OF_NAME = {status.name.replace("_", "").casefold(): int(status) for status in HTTPStatus}
_MESSAGE_LENGTH = 300
# a line end would be an error of HTTP that shows the token
_TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)


class Outcome(t.NamedTuple):
    """The meaning of an answer: ``outcome`` in the words of module event_approve, and the reason as one sentence."""

    outcome: str
    reason: str


class Request(t.NamedTuple):
    """A POST that approves the events ``event_ids``."""

    url: str
    event_ids: tuple[str, ...]
    body: dict[str, list[str]] | None = None


class Answer(t.NamedTuple):
    """What Azure Resource Manager says about one event; the status is that of HTTP, or -1 without a valid answer."""

    status: int
    code: str
    message: str


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


def _events_url(endpoint: str, resource_id: str) -> str:
    parts = _parts_of(resource_id)
    name = urllib.parse.quote(parts["name"], safe="()")
    return (
        f"{endpoint.rstrip('/')}/subscriptions/{parts['subscription']}/resourcegroups/{parts['group']}"
        f"/providers/Microsoft.Compute/virtualMachines/{name}/providers/Microsoft.Maintenance/scheduledevents"
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


def list_requests(endpoint: str, resource_id: str, event_ids: t.Sequence[str]) -> list[Request]:
    """Return the one request that approves all these events, by the stable version.

    ``endpoint`` is the base URL of Azure Resource Manager. ``resource_id`` is the resource ID of a VM in Resources
    (reference 5.12.4).

    Raises:
        ValueError: the resource id is not that of a VM.
    """
    url = f"{_events_url(endpoint, resource_id)}?api-version={API_VERSION}"
    return [Request(url, tuple(event_ids), {"value": list(event_ids)})]


def single_requests(endpoint: str, resource_id: str, event_ids: t.Sequence[str]) -> list[Request]:
    """Return one request for each event, by the preview version; arguments and error are those of list_requests."""
    url = _events_url(endpoint, resource_id)
    return [
        Request(
            f"{url}/{urllib.parse.quote(event_id, safe='()')}/acknowledge?api-version={PREVIEW_API_VERSION}",
            (event_id,),
        )
        for event_id in event_ids
    ]


def is_unknown_operation(answer: Answer) -> bool:
    """Return True if Azure Resource Manager does not know the version or the operation of the request."""
    if answer.status == 404 and not answer.code:
        return True
    return answer.status == 405 or (answer.status in (400, 404) and answer.code in _UNKNOWN_VERSION)


def answers_of(event_ids: t.Sequence[str], status: int, body: str, problem: str) -> dict[str, Answer]:
    """Return event id -> what Azure Resource Manager answered about this event.

    An event is approved only if the answer surely says so: 200 with the text ``value``, or 207 with the code OK for
    exactly this event. An event that the answer says nothing of has the status -1, as after a missing answer.
    ``status`` is that of HTTP, -1 without an answer; ``problem`` describes the failure, for an answer that has no
    error of its own.
    """
    content = _object(_parsed(body))
    error = _object(content.get("error"))
    if status == HTTPStatus.MULTI_STATUS:
        return _answers_of_list(event_ids, error.get("details"))
    answer = Answer(status, *_texts_of(error))
    if status == HTTPStatus.OK and (error or not isinstance(content.get("value"), str)):
        answer = Answer(-1, "", "the answer does not say whether it approved")
    elif status in _ABOUT_AN_EVENT and len(event_ids) > 1 and answer.code not in _WRONG_RESOURCE:
        answer = answer._replace(status=-1, message=f"{answer.message}; the answer does not name the event")
    elif not (answer.code or answer.message):
        answer = answer._replace(message=problem[:_MESSAGE_LENGTH])
    return {event_id: answer for event_id in event_ids}


def _answers_of_list(event_ids: t.Sequence[str], details: object) -> dict[str, Answer]:
    entries = [_object(entry) for entry in details] if isinstance(details, list) else []
    answers = {}
    for event_id in event_ids:
        own = [entry for entry in entries if str(entry.get("target")).casefold() == event_id.casefold()]
        code, message = _texts_of(own[0]) if len(own) == 1 else ("", "")
        answers[event_id] = Answer(
            _STATUS_OF_NAME.get(code.casefold(), -1), code, message or "the answer does not name the event once"
        )
    return answers


def outcome_of(answer: Answer) -> Outcome:
    """Return what an answer of Azure Resource Manager means for its event."""
    status, code, message = answer
    if status == HTTPStatus.OK:
        return Outcome(APPROVED, "Azure Resource Manager accepted the approval")
    said = ": ".join(filter(None, (code, message)))
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
    if status in _ABOUT_AN_EVENT:
        return Outcome(NOT_DUE, f"{about}: the event cannot be approved in its present state")
    if status == -1:
        return Outcome(
            FAILED,
            f"Azure Resource Manager gave no valid answer ({said}): whether it approved is unknown; {_SENT_AGAIN}",
        )
    if status in _TEMPORARY or 200 <= status < 300:
        return Outcome(FAILED, f"{about}: whether it approved is unknown; {_SENT_AGAIN}")
    return Outcome(FAILED, f"{about}: the request was refused; check maintenance_arm_resource_id and the endpoint")


def changed_since(decision: t.Mapping[str, t.Any], read_again: t.Mapping[str, t.Any], vm: str) -> Outcome | None:
    """Return why the decision, which has the VMs that are prepared, no longer holds, or None.

    ``read_again`` is a later result of module maintenance_info on the host that is this VM; empty or skipped if the
    host has not read the events.
    """
    if not read_again or read_again.get("skipped"):
        return None
    if read_again.get("failed") or read_again.get("unreachable") or not read_again.get("available"):
        reason = read_again.get("reason") or read_again.get("msg") or "no reason is known"
        return Outcome(FAILED, f"the event could not be read again before the approval: {reason}")
    key = decision["event_id"].casefold()
    event = next((event for event in read_again.get("events", ()) if event["key"] == key), None)
    if event is None:
        return Outcome(NOT_FOUND, "the event is no longer listed")
    decided = dict(decision, status="Scheduled")
    reports = dict.fromkeys(
        release.all_vms([decision["resources"]]), release.Report(sighting_of([decided]), prepared=True)
    )
    reports[vm_key(vm)] = release.Report(sighting_of([decided, event]), prepared=True)
    found = release.obstacles(reports, "Azure has added it to the event, and it is not prepared")
    if not found:
        return None
    return Outcome(STARTED if release.STARTED in found else NOT_DUE, "; ".join(map(str, found)))


def _parsed(body: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _object(value: object) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def _texts_of(error: t.Mapping[str, t.Any]) -> tuple[str, str]:
    """Return the code and the message of an error of Azure Resource Manager, as far as it has them."""
    code, message = (error.get(name) for name in ("code", "message"))
    return (
        printable(code[:_MESSAGE_LENGTH]) if isinstance(code, str) else "",
        printable(message[:_MESSAGE_LENGTH]) if isinstance(message, str) else "",
    )
