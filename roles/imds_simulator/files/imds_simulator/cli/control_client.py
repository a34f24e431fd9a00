# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Sends requests to the control API of a running simulator."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..printable_text import printable

# the control API is local: requests must not go through a proxy of the environment
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Call(NamedTuple):
    """One request to the control API."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None


def send(options: SimpleNamespace, call: Call) -> tuple[int, Any]:
    """Send ``call`` to the control API that the options ``control`` and ``control_token`` name.

    Returns:
        The status and the decoded answer, or an error text. Status 0: there was no answer.
    """
    data = None if call.body is None else json.dumps(call.body).encode()
    headers = {"Content-Type": "application/json"}
    if options.control_token:
        headers["Authorization"] = f"Bearer {options.control_token}"
    prepared = urllib.request.Request(options.control + call.path, data=data, method=call.method, headers=headers)
    try:
        with _DIRECT.open(prepared, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, _error_text(error.read())
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        problem = getattr(reason, "strerror", None) or printable(str(reason))
        return 0, f"no control API at {options.control}: {problem}; check that the simulator runs, and check --control"


def get_state(options: SimpleNamespace, query: str = "") -> tuple[int, Any]:
    """Return the status and the state of the simulator, or an error text; arguments and status are those of ``send``.

    ``query`` asks for the log, too. Status 0 also stands for the answer of another program.
    """
    status, answer = send(options, Call("GET", "/state" + query))
    if status == 200 and not (isinstance(answer, dict) and "run" in answer):
        return 0, f"{options.control}: its answer is not that of a simulator of this version; check --control"
    return status, answer


def _error_text(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")
