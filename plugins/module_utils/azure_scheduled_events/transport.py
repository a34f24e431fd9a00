# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""One HTTP exchange with IMDS, within a wall-clock limit (docs/reference/scheduled-events.md 1.8.5, 4.4).

This is the only file that imports ``urllib3``, which comes with ``requests``. There is no proxy, redirect, cookie or
content coding.
"""

from __future__ import annotations

import http.client
import socket
import time
import traceback
from typing import Any, Callable, Mapping, NamedTuple, Protocol
from urllib.parse import urlsplit

from .errors import ImdsError, ImdsUnreachable, ImdsUnreadable

try:
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError
    from urllib3.util import Retry

    REQUESTS_IMPORT_ERROR: str | None = None
except ImportError:
    REQUESTS_IMPORT_ERROR = traceback.format_exc()

# the next request fails with one of these after the server has closed an idle connection
_CLOSED_BY_SERVER = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ConnectionAbortedError)
_CHUNK_SIZE = 65536


class Request(NamedTuple):
    """An HTTP request.

    Attributes:
        method: such as "GET".
        path: with the query.
        headers: all of them except Host and Content-Length.
        body: None where there is none.
        known: body of the last answer to this request, or None.
        hold: seconds for which a transport may hold back an answer whose body is ``known``. `Transport` holds no
            answer back.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None
    known: bytes | None = None
    hold: float = 0.0


class Response(NamedTuple):
    """A complete HTTP answer: status, headers (names in any letter case), body as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class TransportInterface(Protocol):
    """The part of a transport that a client needs, with the meaning that `Transport` documents."""

    requests_sent: int

    def exchange(self, request: Request, total: float, rest: float) -> Response:
        """Send one request and read its whole answer."""

    def close(self) -> None:
        """Close the kept connection."""


# endpoint, max_bytes, connect_timeout and clock, as `Transport` takes them
TransportFactory = Callable[[str, int, float, Callable[[], float]], TransportInterface]


class _Deadline:
    """The time limit of the current exchange: ``total`` until the first byte arrives, ``rest`` afterwards."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._deadline = 0.0
        self._body_timeout = 0.0
        self.answering = False
        self.connections = 0

    def start(self, total: float, rest: float) -> None:
        self._deadline = self._clock() + total
        self._body_timeout = rest
        self.answering = False

    def remaining(self) -> float:
        seconds = self._deadline - self._clock()
        if seconds <= 0:
            raise socket.timeout("the time limit for the whole answer has passed")
        return seconds

    def received(self) -> None:
        if not self.answering:
            self.answering = True
            self._deadline = min(self._deadline, self._clock() + self._body_timeout)


class _LimitedSocket(socket.socket):
    """A connected socket whose reads and writes end at the exchange's time limit, however slowly bytes move."""

    limit: _Deadline

    def sendall(self, *args: Any) -> None:
        self.settimeout(self.limit.remaining())
        super().sendall(*args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.limit.remaining())
        count = super().recv_into(*args)
        if count:  # the end of the stream is not the beginning of an answer
            self.limit.received()
        return count


def _limited_pool(endpoint: str, limit: _Deadline, connect_timeout: float) -> HTTPConnectionPool:
    """Return a pool whose connections obey the limit; a new one takes at most `connect_timeout` seconds of it."""

    class Connection(HTTPConnection):
        def connect(self) -> None:
            self.timeout = min(connect_timeout, limit.remaining())
            super().connect()
            plain = self.sock
            limited = _LimitedSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
            limited.settimeout(self.timeout)
            limited.limit = limit
            self.sock = limited
            limit.connections += 1

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    parts = urlsplit(endpoint)
    return Pool(parts.hostname or "", parts.port, timeout=connect_timeout, maxsize=1, retries=Retry(False))


class Transport:
    """Exchanges with one server over one keep-alive connection, for one thread at a time.

    Args:
        endpoint: base URL, ``http://HOST[:PORT]``.
        max_bytes: longest body that is read; a longer one raises ImdsUnreadable.
        connect_timeout: seconds for setting up a connection.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        endpoint: str,
        max_bytes: int,
        connect_timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._max_bytes = max_bytes
        self._connect_timeout = connect_timeout
        self._limit = _Deadline(clock)
        self._pool: HTTPConnectionPool | None = None
        self.requests_sent = 0

    def exchange(self, request: Request, total: float, rest: float) -> Response:
        """Return the whole answer to one request, whatever its status.

        A request on a kept connection that the server has closed is repeated once, on a new connection. ``total`` is
        in seconds until the answer begins, ``rest`` in seconds for all that follows its first byte.

        Raises:
            ImdsUnreachable: no whole answer came in time.
            ImdsUnreadable: the answer was cut short, or is longer than ``max_bytes``.
            ImdsError: the library requests is missing.
        """
        if REQUESTS_IMPORT_ERROR is not None:
            raise ImdsError("the Python library requests is not installed on this host", retryable=False)
        self._limit.start(total, rest)
        opened = self._limit.connections
        try:
            return self._attempt(request)
        except (HTTPError, OSError) as error:
            kept = opened > 0 and opened == self._limit.connections
            if not (kept and not self._limit.answering and isinstance(_root_cause(error), _CLOSED_BY_SERVER)):
                raise self._failure(error, request, total) from error
        try:
            return self._attempt(request)
        except (HTTPError, OSError) as error:
            raise self._failure(error, request, total) from error

    def close(self) -> None:
        """Close the kept connection."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _attempt(self, request: Request) -> Response:
        if self._pool is None:
            self._pool = _limited_pool(self._endpoint, self._limit, self._connect_timeout)
        self.requests_sent += 1
        response: Any = self._pool.request(
            request.method,
            request.path,
            body=request.body,
            headers=request.headers,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
            enforce_content_length=True,
        )
        try:
            return Response(response.status, response.headers, self._body(response))
        except BaseException:
            # the rest of an unfinished answer must not become part of the next one
            response.close()
            raise

    def _body(self, response: Any) -> bytes:
        pieces: list[bytes] = []
        length = 0
        try:
            while piece := response.read(_CHUNK_SIZE, decode_content=False):
                length += len(piece)
                if length > self._max_bytes:
                    text = f"the answer of {self._endpoint} is longer than {self._max_bytes} bytes and was not read"
                    raise ImdsUnreadable(text, status=response.status)
                pieces.append(piece)
        except ReadTimeoutError:
            raise
        except (HTTPError, OSError, ValueError) as error:
            text = f"the answer of {self._endpoint} was cut short after {length} bytes: {_root_cause(error)}"
            raise ImdsUnreadable(text, status=response.status) from error
        return b"".join(pieces)

    def _failure(self, error: Exception, request: Request, total: float) -> ImdsError:
        about = f"{request.method} {self._endpoint}{request.path}"
        if isinstance(error, ReadTimeoutError):
            state = "the answer did not end in time" if self._limit.answering else f"no answer within {total:g} s"
            return ImdsUnreachable(f"{about}: {state}", connected=True)
        if isinstance(error, NewConnectionError):
            state = f"no connection ({_root_cause(error)})"
        elif isinstance(error, ConnectTimeoutError):
            state = f"no connection within {min(self._connect_timeout, total):g} s"
        else:
            return ImdsUnreachable(f"{about}: the connection broke ({_root_cause(error)})", connected=True)
        return ImdsUnreachable(f"{about}: {state}; is this an Azure VM, and is the endpoint right?")


def _root_cause(error: BaseException) -> BaseException:
    """Return the innermost exception of those that urllib3 has wrapped."""
    inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error if inner is None else _root_cause(inner)
