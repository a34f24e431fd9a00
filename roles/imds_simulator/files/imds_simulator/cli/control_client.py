# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Sends requests to the control API of a running simulator."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..control import MARK
from ..http_reply import parse_json
from ..printable_text import printable

# real seconds
TIMEOUT = 10.0


class Call(NamedTuple):
    """One request to the control API; in ``body`` a time or a path is sent as its text."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None


class ControlError(Exception):
    """The control API refused a request: ``status`` is that of the answer, 0 without one; ``error`` is its text."""

    def __init__(self, call: Call, status: int, error: str) -> None:
        super().__init__(f"{call.method} {call.path}: {error}")
        self.status = status
        self.error = error


def send(options: SimpleNamespace, call: Call, timeout: float = TIMEOUT, *, again: bool = False) -> Any:
    """Send ``call`` to the control API that the options ``control`` and ``control_token`` name.

    No proxy of the environment is used, and no redirection followed, which could lead the token away.
    ``timeout``: real seconds to wait for the connection, and for each part of the answer. ``again``: it has answered
    before.

    Returns:
        The decoded answer, a JSON object.

    Raises:
        ControlError: the request was refused. Status 0: there was no answer, or that of another program.
    """
    body = None if call.body is None else json.dumps(call.body, default=str).encode()
    headers = {"Content-Type": "application/json"}
    if options.control_token:
        headers["Authorization"] = f"Bearer {options.control_token}"
    url = urlsplit(options.control)
    try:
        connection_class = HTTPSConnection if url.scheme == "https" else HTTPConnection
        with contextlib.closing(connection_class(url.netloc, timeout=timeout)) as connection:
            connection.request(call.method, url.path + call.path, body, headers)
            reply = connection.getresponse()
            status, answer = reply.status, parse_json(reply.read()) if MARK in reply.headers else None
    except (OSError, HTTPException, ValueError) as error:
        problem = getattr(error, "strerror", None) or printable(str(error))
        text = f"no control API at {options.control}: {problem}; check that the simulator runs, and check --control"
        if again and isinstance(error, ConnectionError):
            text = f"{options.control}: the simulator has ended"
        raise ControlError(call, 0, text) from None
    if isinstance(answer, dict):
        if status < 400:
            return answer
        if isinstance(answer.get("error"), str):
            raise ControlError(call, status, answer["error"])
    text = f"{options.control}: its answer is not that of a simulator of this version; check --control"
    raise ControlError(call, 0, text)


def get_state(options: SimpleNamespace, query: str = "", *, again: bool = False) -> Any:
    """Return the state of the simulator, with the log that ``query`` asks for; raise ControlError as ``send`` does."""
    return send(options, Call("GET", "/state" + query), again=again)
