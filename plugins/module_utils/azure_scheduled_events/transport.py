# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""One HTTP exchange with IMDS, within a wall-clock limit (docs/reference/scheduled-events.md 1.8.5, 4.4).

This is the only file that imports ``requests``. There is no proxy, redirect, cookie or content
coding; a request is prepared once and goes directly through the session's adapter, without the
overhead of ``Session.send``.
"""

from __future__ import annotations

import http.client
import socket
import time
import traceback
from typing import Any, Callable, Mapping, NamedTuple, Protocol

from .errors import ImdsError, ImdsUnreachable, ImdsUnreadable

try:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.exceptions import HTTPError, NewConnectionError, ReadTimeoutError

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
        headers: never changed after the first exchange: the same object means the same headers.
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
    """A connected socket whose reads end at the exchange's time limit, however slowly bytes arrive."""

    limit: _Deadline

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.limit.remaining())
        count = super().recv_into(*args)
        if count:  # the end of the stream is not the beginning of an answer
            self.limit.received()
        return count


def _limited_adapter(limit: _Deadline) -> HTTPAdapter:
    """An adapter of requests whose connections obey the limit."""

    class Connection(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            plain = self.sock
            connect_timeout = plain.gettimeout()
            limited = _LimitedSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
            limited.settimeout(connect_timeout)
            limited.limit = limit
            self.sock = limited
            limit.connections += 1

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class Adapter(HTTPAdapter):
        """Skips the work per request that only several servers, proxies or TLS need."""

        pool: HTTPConnectionPool | None = None

        def get_connection_with_tls_context(
            self, request: Any, verify: Any, proxies: Any = None, cert: Any = None
        ) -> Any:
            if self.pool is None:
                self.pool = self.poolmanager.connection_from_url(request.url)
            return self.pool

        def get_connection(self, url: Any, proxies: Any = None) -> Any:
            """As versions of requests before 2.32 call it."""
            if self.pool is None:
                self.pool = self.poolmanager.connection_from_url(url)
            return self.pool

        def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
            pass

        def request_url(self, request: Any, proxies: Any) -> Any:
            return request.target

        def build_response(self, req: Any, resp: Any) -> Any:
            return resp

        def close(self) -> None:
            self.pool = None
            super().close()

    adapter = Adapter(pool_connections=1, pool_maxsize=1)
    adapter.poolmanager.pool_classes_by_scheme = {"http": Pool}
    return adapter


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
        if REQUESTS_IMPORT_ERROR is not None:
            raise ImdsError("the Python library requests is not installed on this host", retryable=False)
        self._endpoint = endpoint
        self._max_bytes = max_bytes
        self._connect_timeout = connect_timeout
        self._limit = _Deadline(clock)
        self._adapter = _limited_adapter(self._limit)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.mount("http://", self._adapter)
        self._gets: dict[str, Any] = {}
        self.requests_sent = 0

    def exchange(self, request: Request, total: float, rest: float) -> Response:
        """Return the whole answer to one request, whatever its status.

        A request on a kept connection that the server has closed is repeated once, on a new connection. ``total`` is
        in seconds until the answer begins, ``rest`` in seconds for all that follows its first byte.

        Raises:
            ImdsError: the request cannot be sent to this endpoint.
            ImdsUnreachable: no whole answer came in time.
            ImdsUnreadable: the answer was cut short, or is longer than ``max_bytes``.
        """
        try:
            prepared = self._prepared(request)
        except (requests.exceptions.RequestException, HTTPError, ValueError) as error:
            raise ImdsError(
                f"endpoint {self._endpoint!r} cannot be used: {error}", self._endpoint, retryable=False
            ) from error
        if prepared.given is not request.headers:
            prepared.given = request.headers
            # a plain one: urllib3 copies it and goes through it for each request
            prepared.headers = dict(request.headers)
            if request.body is not None:
                prepared.headers["Content-Length"] = str(len(request.body))
        self._limit.start(total, rest)
        opened = self._limit.connections
        try:
            return self._attempt(prepared, total)
        except (requests.exceptions.RequestException, HTTPError) as error:
            kept = opened > 0 and opened == self._limit.connections
            if not (kept and not self._limit.answering and isinstance(_root_cause(error), _CLOSED_BY_SERVER)):
                raise self._unreachable(error, request, total) from error
        try:
            return self._attempt(prepared, total)
        except (requests.exceptions.RequestException, HTTPError) as error:
            raise self._unreachable(error, request, total) from error

    def close(self) -> None:
        """Close the kept connection."""
        self._session.close()

    def _prepared(self, request: Request) -> Any:
        """Return the request as the adapter takes it; GET requests are prepared once per path."""
        prepared: Any = self._gets.get(request.path) if request.method == "GET" else None
        if prepared is None:
            url = self._endpoint + request.path
            prepared = self._session.prepare_request(requests.Request(request.method, url, data=request.body))
            prepared.target = prepared.path_url
            prepared.given = None
            if request.method == "GET":
                self._gets[request.path] = prepared
        return prepared

    def _attempt(self, prepared: Any, total: float) -> Response:
        self.requests_sent += 1
        limits = (min(self._connect_timeout, total), total)
        # the adapter returns the response of urllib3
        response: Any = self._adapter.send(prepared, stream=True, timeout=limits)
        whole = False
        try:
            body = self._body(response)
            whole = True
        finally:
            if not whole:
                # the rest of an unfinished answer must not become part of the next one
                response.close()
        return Response(response.status, response.headers, body)

    def _body(self, response: Any) -> bytes:
        pieces = []
        length = 0
        while True:
            try:
                piece = response.read(_CHUNK_SIZE, decode_content=False)
            except ReadTimeoutError as error:
                raise requests.exceptions.ReadTimeout(error) from error
            except (HTTPError, OSError, ValueError) as error:
                raise ImdsUnreadable(
                    f"the answer of {self._endpoint} was cut short after {length} bytes: {_root_cause(error)}",
                    self._endpoint,
                    response.status,
                ) from error
            if not piece:
                break
            length += len(piece)
            if length > self._max_bytes:
                raise ImdsUnreadable(
                    f"the answer of {self._endpoint} is longer than {self._max_bytes} bytes and was not read",
                    self._endpoint,
                    response.status,
                )
            pieces.append(piece)
        announced = response.headers.get("Content-Length", "")
        # compared as text: a number may have more digits than int() takes
        if announced.isdecimal() and announced.lstrip("0") != str(length).lstrip("0"):
            raise ImdsUnreadable(
                f"the answer of {self._endpoint} was cut short: {length} of {announced} bytes came",
                self._endpoint,
                response.status,
            )
        return b"".join(pieces)

    def _unreachable(self, error: Exception, request: Request, total: float) -> ImdsUnreachable:
        about = f"{request.method} {self._endpoint}{request.path}"
        if isinstance(error, requests.exceptions.ReadTimeout):
            state = "the answer did not end in time" if self._limit.answering else f"no answer within {total:g} s"
            return ImdsUnreachable(f"{about}: {state}", self._endpoint, connected=True)
        if isinstance(error, requests.exceptions.ConnectTimeout):
            state = f"no connection within {min(self._connect_timeout, total):g} s"
        elif _is_connect_failure(error):
            state = f"no connection ({_root_cause(error)})"
        else:
            return ImdsUnreachable(
                f"{about}: the connection broke ({_root_cause(error)})", self._endpoint, connected=True
            )
        return ImdsUnreachable(f"{about}: {state}; is this an Azure VM, and is the endpoint right?", self._endpoint)


def _is_connect_failure(error: BaseException) -> bool:
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    return isinstance(reason, NewConnectionError)


def _root_cause(error: BaseException) -> BaseException:
    """Return the innermost exception of those that requests and urllib3 have wrapped."""
    seen = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if inner is None:
            break
        error = inner
    return error
