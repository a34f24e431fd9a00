# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One HTTP exchange with IMDS. The only file of the recorder that imports requests.

There is no proxy, redirect or content coding.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from http.client import HTTPException, IncompleteRead
from typing import Any, Callable, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError
from urllib3.exceptions import TimeoutError as PoolTimeout

MAX_BODY = 4 * 1024 * 1024
_CONNECT_TIMEOUT = 3.0
_CHUNK = 65536
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "imds-recorder"}
_TIMEOUTS = (requests.Timeout, PoolTimeout, socket.timeout, TimeoutError)


class Reply(NamedTuple):
    """The outcome of a request.

    ``status`` is 0 if there is no answer; ``error`` is the code of the reason then. ``connection`` is the number
    of the connection. Names of ``headers`` are in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    error: str
    connection: int


class Exchange:
    """Sends GET and HEAD requests to ``endpoint`` over one connection; ``clock`` returns monotonic seconds."""

    def __init__(self, endpoint: str, clock: Callable[[], float]) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._deadline = 0.0
        # a session would read the bodies of redirects as a whole
        self._adapter = HTTPAdapter()
        self._adapter.poolmanager.pool_classes_by_scheme = {"http": _pool_class(lambda: self._deadline - clock())}
        self._connections = self._port = 0

    def send(self, method: str, path: str, headers: Mapping[str, str], timeout: float) -> Reply:
        """Send a request by GET or HEAD.

        ``path`` has the query, and is sent as it is. ``headers`` are further ones; ``timeout`` is in seconds, for the
        whole answer.
        """
        request = requests.Request(method, self._endpoint + "/", headers={**_HEADERS, **headers}).prepare()
        # requests would rewrite // and escapes
        request.url = self._endpoint + path
        self._deadline = self._clock() + timeout
        try:
            answer = self._adapter.send(request, timeout=(min(_CONNECT_TIMEOUT, timeout), timeout), stream=True)
            with answer:
                self._note_connection(answer)
                body = self._body(answer)
            return Reply(
                answer.status_code,
                {name.lower(): value for name, value in answer.headers.items()},
                body,
                "",
                self._connections,
            )
        except _BodyError as error:
            return Reply(0, {}, b"", str(error), self._connections)
        except (requests.RequestException, HTTPError, HTTPException, OSError, ValueError) as error:
            return Reply(0, {}, b"", _code(error), self._connections)

    def _body(self, answer: requests.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in answer.raw.stream(_CHUNK, decode_content=False):
            parts.append(part)
            size += len(part)
            if size > MAX_BODY:
                raise _BodyError("too-large")
            if self._clock() > self._deadline:
                raise _BodyError("timeout")
        return b"".join(parts)

    def _note_connection(self, answer: requests.Response) -> None:
        """Count a new connection: one with another local port, or one that the server closes."""
        sock = getattr(getattr(answer.raw, "_connection", None), "sock", None)
        port = sock.getsockname()[1] if sock is not None else 0
        if not port or port != self._port:
            self._connections += 1
        self._port = port


class _LimitedSocket(socket.socket):
    """A socket whose reads all end at one deadline: a server may send a byte now and then."""

    remaining: Callable[[], float]

    def recv_into(self, *args: Any, **options: Any) -> int:
        """Receive data; raise socket.timeout when the deadline has passed."""
        seconds = self.remaining()
        if seconds <= 0:
            raise socket.timeout("timed out")
        self.settimeout(seconds)
        return super().recv_into(*args, **options)


def _pool_class(remaining: Callable[[], float]) -> type[HTTPConnectionPool]:
    """Return a pool of connections whose reads end when ``remaining`` returns 0 seconds."""

    class Connection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            opened = super()._new_conn()
            limited = _LimitedSocket(opened.family, opened.type, opened.proto, opened.detach())
            limited.remaining = remaining
            return limited

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    return Pool


class _BodyError(Exception):
    """The body is too large, or too slow; the text is the code."""


def _code(error: BaseException) -> str:
    """Return the code of an error: refused, timeout, incomplete, closed, unreachable, or failed."""
    seen: list[BaseException] = []
    todo = [error]
    while todo and len(seen) < 20:
        each = todo.pop()
        seen.append(each)
        reasons = [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
        todo += [reason for reason in reasons if isinstance(reason, BaseException) and reason not in seen]
    # in old versions of urllib3 a refused connection is also a timeout
    if any(isinstance(each, ConnectionRefusedError) for each in seen):
        return "refused"
    if any(isinstance(each, _TIMEOUTS) and not isinstance(each, NewConnectionError) for each in seen):
        return "timeout"
    if any(isinstance(each, IncompleteRead) for each in seen):
        return "incomplete"
    if any(isinstance(each, (ConnectionError, HTTPException, ProtocolError)) for each in seen):
        return "closed"
    return "unreachable" if any(isinstance(each, OSError) and each.errno for each in seen) else "failed"
