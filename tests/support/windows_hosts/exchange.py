# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The contract of module imds_exchange in Python, in place of PowerShell."""

from __future__ import annotations

import base64
import hashlib
import http.client
import socket
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    "dhcp_options": False,
}
_PERIOD = 1.0
# on some machines of tests another service answers there
_LINK_LOCAL = "169.254."


class ExchangeFailed(Exception):
    """An exchange without a complete answer."""

    def __init__(self, kind: str, connected: bool, reason: str, error: object) -> None:
        super().__init__(str(error))
        self.failure = {"kind": kind, "connected": connected, "reason": reason, "message": f"{reason}: {error}"}


class _Limit:
    """The time limit of one exchange."""

    def __init__(self, timeout: float, rest: float) -> None:
        self._ends = time.monotonic() + timeout
        self._rest: float | None = rest

    def left(self) -> float:
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time has passed")
        return seconds

    def received(self) -> None:
        if self._rest is not None:
            self._ends = min(self._ends, time.monotonic() + self._rest)
            self._rest = None


class _Socket(socket.socket):
    limit: _Limit

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.limit.left())
        count = super().recv_into(*args)
        if count:
            self.limit.received()
        return count


class _Exchanges:
    """Exchanges of one call over one kept connection."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        url = urllib.parse.urlsplit(options["url"])
        assert url.hostname is not None
        self._address, self._path = (url.hostname, url.port or 80), url._replace(scheme="", netloc="").geturl()
        self._options = options
        self._body = options["body"]
        self._connection: http.client.HTTPConnection | None = None
        self.requests_sent = 0

    def once(self) -> dict[str, Any]:
        """Return the answer to one request."""
        kept = self._connection is not None
        try:
            return self._attempt()
        except ExchangeFailed as failed:
            if not (kept and failed.failure["reason"] == "reset" and failed.failure["kind"] == "unreachable"):
                raise
        return self._attempt()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _attempt(self) -> dict[str, Any]:
        limit = _Limit(self._options["timeout"], self._options["rest_timeout"])
        whole = False
        try:
            connection = self._connection or self._connect()
            sock: Any = connection.sock
            sock.limit = limit
            self.requests_sent += 1
            answer = self._answer(connection)
            whole = True
            return answer
        finally:
            if not whole:
                self.close()

    def _connect(self) -> http.client.HTTPConnection:
        wait = min(self._options["connect_timeout"], self._options["timeout"])
        if self._address[0].startswith(_LINK_LOCAL):
            raise ExchangeFailed("unreachable", False, "refused", "the host has no link-local network")
        try:
            plain = socket.create_connection(self._address, wait)
        except TimeoutError as error:
            raise ExchangeFailed("unreachable", False, "timeout", error) from error
        except OSError as error:
            raise ExchangeFailed("unreachable", False, "refused", error) from error
        self._connection = http.client.HTTPConnection(*self._address)
        self._connection.sock = _Socket(plain.family, plain.type, plain.proto, fileno=plain.detach())
        return self._connection

    def _answer(self, connection: http.client.HTTPConnection) -> dict[str, Any]:
        try:
            connection.request(self._options["method"], self._path, self._body, self._options["headers"])
            response = connection.getresponse()
        except TimeoutError as error:
            raise ExchangeFailed("unreachable", True, "timeout", error) from error
        except OSError as error:
            raise ExchangeFailed("unreachable", True, "reset", error) from error
        except http.client.HTTPException as error:
            raise ExchangeFailed("unreachable", True, "protocol", error) from error
        body = self._content(response)
        if response.will_close:
            self.close()
        return {
            "status": response.status,
            "headers": [list(pair) for pair in response.getheaders()],
            "body": base64.b64encode(body).decode("ascii"),
        }

    def _content(self, response: http.client.HTTPResponse) -> bytes:
        announced = response.length
        body = b""
        while True:
            try:
                piece = response.read(65536)
            except TimeoutError as error:
                raise ExchangeFailed("unreachable", True, "timeout", error) from error
            except (OSError, http.client.HTTPException) as error:
                raise ExchangeFailed("unreadable", True, "reset", error) from error
            body += piece
            if len(body) > self._options["max_bytes"]:
                raise ExchangeFailed("unreadable", True, "too_long", "the answer is too long")
            if not piece:
                break
        if announced is not None and len(body) != announced:
            raise ExchangeFailed("unreadable", True, "reset", f"{len(body)} of {announced} bytes came")
        return body


def perform(
    given: Mapping[str, Any],
    between: Callable[[], None] = lambda: None,
    dhcp_options: Sequence[bytes] = (),
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Return the result of the module.

    ``between`` is called before each further request. ``dhcp_options`` are those of the interfaces of the host.
    Requests are repeated by the seconds of ``clock``, and ``sleep`` waits until the next of them.
    """
    options = _with_defaults(given)
    exchanges = _Exchanges(options)
    try:
        answer = _repeated(exchanges, options, between, clock, sleep)
    except ExchangeFailed as error:
        answer = {"failure": error.failure}
    finally:
        exchanges.close()
    if options["dhcp_options"]:
        answer["dhcp_options"] = [base64.b64encode(value).decode("ascii") for value in dhcp_options]
    return {"changed": False, "requests_sent": exchanges.requests_sent, **answer}


def _repeated(
    exchanges: _Exchanges,
    options: Mapping[str, Any],
    between: Callable[[], None],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> dict[str, Any]:
    ends = clock() + options["repeat_for"]
    while True:
        began = clock()
        answer = exchanges.once()
        following = began + _PERIOD
        if not _is_known(answer, options["known_hash"]) or following > ends:
            return answer
        sleep(max(0.0, following - clock()))
        between()


def _is_known(answer: Mapping[str, Any], known: str | None) -> bool:
    if known is None or answer["status"] != 200:
        return False
    return hashlib.sha256(base64.b64decode(answer["body"])).hexdigest() == known


def _with_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in given.items() if not name.startswith("_ansible_") and value is not None}
    if unknown := options.keys() - _DEFAULTS.keys():
        raise ValueError(f"unknown options: {unknown}")
    options = {**_DEFAULTS, **options}
    if options["body"] is not None:
        options["body"] = base64.b64decode(options["body"], validate=True)
    return options
