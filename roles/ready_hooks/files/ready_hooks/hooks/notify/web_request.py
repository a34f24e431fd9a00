# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""One POST request to a web hook.

No message contains more of a URL than its host, because the rest of it is often a secret. Redirects
are not followed, and the proxies of the environment are not used.
"""

from __future__ import annotations

import http.client
import queue
import re
import ssl
import threading
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple
from urllib.parse import urlsplit

from ready_hooks.core.errors import HookError, OutOfTime

# beside 5xx: the server, or a proxy in front of it, asks for another attempt
RETRIED_STATUS = (408, 425, 429)
_MOST_ANSWER = 4096
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Address(NamedTuple):
    """A URL in its parts; `target` is path and query, and may be a secret."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        """The part of the URL that messages may contain."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"https": 443, "http": 80}[self.scheme]
        return f"{self.scheme}://{host}" + ("" if self.port == usual else f":{self.port}")

    @property
    def is_protected(self) -> bool:
        """Return True if other hosts cannot read the request."""
        return self.scheme == "https" or self.host in _LOOPBACK


class Answer(NamedTuple):
    """The status, and the seconds after which the server asks for another attempt, or None."""

    status: int
    retry_after: float | None


def parse_url(url: str) -> Address:
    """Return the parts of the URL. Raises ValueError, without the URL in its text."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("it is not a URL") from None
    if not re.fullmatch(r"[!-~]+", url) or parts.scheme not in ("http", "https") or not host:
        raise ValueError("expected a URL that begins with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError("a user or a password in the URL is not supported; use header_files")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host, port or {"https": 443, "http": 80}[parts.scheme], target)


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Return a context that verifies servers by this file, or by the system's authorities. Raises HookError."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise HookError(ca_file or "TLS", f"the authorities cannot be read: {reason(error)}") from None


def post(
    address: Address,
    content: bytes,
    headers: Mapping[str, str],
    context: ssl.SSLContext,
    proxy: Address | None,
    timeout: float,
) -> Answer:
    """Send the content, and return the answer.

    `headers` come beside those of HTTP; `proxy` is an HTTP proxy; `timeout` is in seconds, for all of it.

    Raises:
        HookError: there was no answer.
    """

    def request() -> Answer:
        connection = _connection(address, context, proxy, timeout)
        try:
            target = address.origin + address.target if proxy and address.scheme == "http" else address.target
            connection.request("POST", target, content, dict(headers))
            response = connection.getresponse()
            response.read(_MOST_ANSWER)
            return Answer(response.status, _seconds(response.getheader("Retry-After", "")))
        finally:
            connection.close()

    answer: Answer = within(timeout, address.origin, request)
    return answer


def connect(address: Address, context: ssl.SSLContext, proxy: Address | None, timeout: float) -> None:
    """Connect, with TLS where the URL has it, and send nothing. Raises HookError."""

    def handshake() -> None:
        connection = _connection(address, context, proxy, timeout)
        try:
            connection.connect()
        finally:
            connection.close()

    within(timeout, address.origin, handshake)


def within(limit: float, subject: str, action: Callable[[], Any]) -> Any:
    """Return the result of the action, or raise OutOfTime at the limit, whatever the action waits for.

    The time-out of a socket limits neither the look-up of a name nor an answer that comes byte by byte.
    """
    ends: queue.Queue[tuple[Any, Exception | None]] = queue.Queue(1)

    def work() -> None:
        try:
            ends.put((action(), None))
        except Exception as error:  # raised by the thread that waits
            ends.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        result, error = ends.get(timeout=limit)
    except queue.Empty:
        raise OutOfTime(subject, f"there was no answer within {limit:.1f} s") from None
    if isinstance(error, ssl.SSLCertVerificationError):
        raise NotVerified(subject, f"its certificate is not valid: {error.verify_message}", "set ca_file") from None
    if isinstance(error, TimeoutError):
        raise OutOfTime(subject, f"there was no answer within {limit:.1f} s") from None
    if error is not None:
        raise HookError(subject, reason(error)) from None
    return result


class NotVerified(HookError):
    """The server's certificate is not valid; another attempt has the same result."""


def reason(error: Exception) -> str:
    """Return a reason without a URL, which the text of an HTTPException may have."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return type(error).__name__


def _connection(
    address: Address, context: ssl.SSLContext, proxy: Address | None, timeout: float
) -> http.client.HTTPConnection:
    first = proxy or address
    if address.scheme == "http":
        return http.client.HTTPConnection(first.host, first.port, timeout=timeout)
    connection = http.client.HTTPSConnection(first.host, first.port, timeout=timeout, context=context)
    if proxy is not None:
        connection.set_tunnel(address.host, address.port)
    return connection


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,6}", text) else None
