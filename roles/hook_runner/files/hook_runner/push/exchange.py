# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One HTTP request to the endpoint of the push: direct, verified, and bounded in time.

The standard library's client knows no proxy and follows no redirect. Each delivery has its own
connection: deliveries are rare.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from azure_scheduled_events.named_tuple import NamedTuple
from azure_scheduled_events.timestamps import parse_time


class Address(NamedTuple):
    """The parts of a push_url."""

    is_tls: bool
    host: str
    port: int
    target: str

    def shown(self) -> str:
        """Return the URL for logs, without the query, which may have a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.target.partition('?')[0]}"


class Reply(NamedTuple):
    """The beginning of an HTTP answer: its status, and the seconds of Retry-After or None."""

    status: int
    retry_after: float | None


# characters of the reason in a sentence; a part of it may be the text of the other side
_LONGEST_REASON = 200


class NoReply(Exception):
    """No answer came; the text is a sentence."""


def parse_url(url: str) -> Address:
    """Return the parts of a URL that `config.values.push_url` has accepted."""
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(is_tls, parts.hostname or "", parts.port or (443 if is_tls else 80), target)


class _Limit:
    """The time limit of one exchange, from the connection to the headers of the answer."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def remaining(self) -> float:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise socket.timeout("the time limit for the whole exchange has passed")
        return seconds


class _PlainSocket(socket.socket):
    """A socket whose reads end at the time limit, however slowly bytes arrive."""

    limit: _Limit

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.limit.remaining())
        return super().recv_into(*args)


class _TlsSocket(ssl.SSLSocket):
    """The same with TLS."""

    limit: _Limit

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.limit.remaining())
        return super().recv_into(*args)


class Exchange:
    """Sends requests to one URL, for one thread.

    Args:
        url: as `config.values.push_url` has accepted it.
        ca_file: certificates that may sign the endpoint's; "" for those of the host.
        timeout: seconds for one exchange; the look-up of the name and each address of a host that
            does not answer may add to it.
    """

    def __init__(self, url: str, ca_file: str, timeout: float) -> None:
        self.address = parse_url(url)
        self._ca_file = ca_file
        self._timeout = timeout
        self._context: ssl.SSLContext | None = None

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send a body of JSON. Raises NoReply."""
        try:
            limit = _Limit(self._timeout)
            connection = http.client.HTTPConnection(self.address.host, self.address.port)
            connection.sock = self._connected(limit)
            try:
                connection.request("POST", self.address.target, body, {**_HEADERS, **headers})
                answer = connection.getresponse()
                return Reply(answer.status, _retry_after(answer))
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._no_reply(error) from None

    def try_connection(self) -> None:
        """Connect, and verify the certificate, without a request. Raises NoReply."""
        try:
            self._connected(_Limit(self._timeout)).close()
        except (OSError, ValueError) as error:
            raise self._no_reply(error) from None

    def _connected(self, limit: _Limit) -> _PlainSocket | _TlsSocket:
        plain = socket.create_connection((self.address.host, self.address.port), limit.remaining())
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(limit.remaining())
            made: Any
            if self.address.is_tls:
                made = self._tls().wrap_socket(plain, server_hostname=self.address.host)
            else:
                made = _PlainSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
            made.limit = limit
            made.settimeout(limit.remaining())
        except BaseException:
            plain.close()
            raise
        found: _PlainSocket | _TlsSocket = made
        return found

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            try:
                context = ssl.create_default_context(cafile=self._ca_file or None)
            except OSError as error:
                raise OSError(f"push_ca_file {self._ca_file} cannot be used: {error.strerror or error}") from None
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.sslsocket_class = _TlsSocket
            self._context = context
        return self._context

    def _no_reply(self, error: Exception) -> NoReply:
        self._context = None  # the operator may have replaced the certificates
        if isinstance(error, ssl.SSLCertVerificationError):
            text = f"its certificate is refused ({error.verify_message})"
        elif isinstance(error, ssl.SSLError):
            text = f"TLS failed ({error.reason or error})"
        elif isinstance(error, socket.timeout):
            text = f"no answer within {self._timeout:g} s"
        else:
            text = f"no answer ({str(error)[:_LONGEST_REASON] or error.__class__.__name__})"
        return NoReply(f"{self.address.shown()}: {text}")


_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "Content-Type": "application/json",
    "User-Agent": "azure-scheduled-events",
}


def _retry_after(answer: http.client.HTTPResponse) -> float | None:
    """Return the seconds of Retry-After in either form; a date counts from the server's own clock."""
    text = (answer.getheader("Retry-After") or "").strip()
    if text.isdecimal():
        return float(text[:9])
    until, now = parse_time(text), parse_time(answer.getheader("Date") or "")
    return None if until is None or now is None else max(0.0, (until - now).total_seconds())
