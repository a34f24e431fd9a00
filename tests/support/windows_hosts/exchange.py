# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The contract of module imds_exchange in Python, in place of PowerShell: the helper sends the requests."""

from __future__ import annotations

import base64
import hashlib
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import (
    ImdsError,
    ImdsUnreachable,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.transport import (
    Request,
    Transport,
)

_DEFAULTS: dict[str, Any] = {
    "url": None,
    "method": "GET",
    "headers": {},
    "body": None,
    "connect_timeout": 3.0,
    "timeout": 10.0,
    "rest_timeout": 10.0,
    "max_bytes": 8388608,
    "known_hash": None,
    "repeat_for": 0.0,
}
_PERIOD = 1.0
# on some machines of tests another service answers there
_LINK_LOCAL = "169.254."
# a part of an error of the helper -> the reason of the failure; "reset" for all others
_REASONS = {
    "no connection (": "refused",
    " within ": "timeout",
    "did not end in time": "timeout",
    "is longer than": "too_long",
}


def perform(
    given: Mapping[str, Any],
    between: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Return the result of the module.

    ``between`` is called before each further request. Requests are repeated by the seconds of
    ``clock``, and ``sleep`` waits until the next of them.
    """
    options = _with_defaults(given)
    url = urllib.parse.urlsplit(options["url"])
    transport = Transport(f"http://{url.netloc}", options["max_bytes"], options["connect_timeout"])
    ends = clock() + options["repeat_for"]
    try:
        while True:
            following = clock() + _PERIOD
            answer = _exchange(transport, url, options)
            if not _is_known(answer, options["known_hash"]) or following > ends:
                break
            sleep(max(0.0, following - clock()))
            between()
    except ImdsError as error:
        answer = {"failure": _failure(error)}
    finally:
        transport.close()
    return {"changed": False, "requests_sent": transport.requests_sent, **answer}


def _exchange(transport: Transport, url: urllib.parse.SplitResult, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to one request."""
    if url.netloc.startswith(_LINK_LOCAL):
        raise ImdsUnreachable("no connection (the host has no link-local network)")
    path = url._replace(scheme="", netloc="").geturl()
    request = Request(options["method"], path, options["headers"], options["body"])
    response = transport.exchange(request, options["timeout"], options["rest_timeout"])
    return {
        "status": response.status,
        "headers": [list(pair) for pair in response.headers.items()],
        "body": base64.b64encode(response.body).decode("ascii"),
    }


def _is_known(answer: Mapping[str, Any], known: str | None) -> bool:
    if known is None or answer["status"] != 200:
        return False
    return hashlib.sha256(base64.b64decode(answer["body"])).hexdigest() == known


def _failure(error: ImdsError) -> dict[str, Any]:
    reason = next((reason for part, reason in _REASONS.items() if part in str(error)), "reset")
    return {
        "kind": "unreachable" if isinstance(error, ImdsUnreachable) else "unreadable",
        "connected": getattr(error, "connected", True),
        "reason": reason,
        "message": f"{reason}: {error}",
    }


def _with_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in given.items() if not name.startswith("_ansible_") and value is not None}
    if unknown := options.keys() - _DEFAULTS.keys():
        raise ValueError(f"unknown options: {unknown}")
    options = {**_DEFAULTS, **options}
    if options["body"] is not None:
        options["body"] = base64.b64decode(options["body"], validate=True)
    return options
