# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Sends requests to the control API of a running simulator."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

# the control API is local: requests must not go through a proxy of the environment
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Call(NamedTuple):
    """One request to the control API."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None


def request(control: str, call: Call, token: str = "") -> tuple[int, Any]:
    """Send ``call`` to the URL ``control``, with ``token`` if it is not empty.

    Returns:
        The status and the decoded answer, or an error text. Status 0: there was no answer.
    """
    data = None if call.body is None else json.dumps(call.body).encode()
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    prepared = urllib.request.Request(control + call.path, data=data, method=call.method, headers=headers)
    try:
        with _DIRECT.open(prepared, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, _error_text(error.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        problem = getattr(reason, "strerror", None) or reason
        return 0, f"no control API at {control}: {problem}; check that the simulator runs, and check --control"


def _error_text(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")
