# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The effects of faults, one class each. Their fields are the options; kinds.py gives them names."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from ..http_reply import Reply
from ..keys import Found, key
from ..times import http_date
from ..value_types import BASE64, BODY, DURATION, HEADER_VALUE, HEADERS, SIGNED_DURATION, integer, number, one_of
from .exchange import Exchange

# real seconds between two checks of a connection
_INTERVAL = 0.1
_HEADERS_MEANING = "further headers, which replace those of the service"
_POSITIVE = number("a finite number above 0", lambda value: value > 0, {"exclusiveMinimum": 0})


class Delivery(NamedTuple):
    """What becomes of one attempt to deliver a notification, after ``delay`` simulated seconds."""

    is_sent: bool = True
    is_answered: bool = True
    delay: float = 0.0


@dataclass(frozen=True)
class Effect:
    """What a fault does to a request of a client, or to a notification, which is a request of the simulator."""

    # False: the fault applies to addresses of VMs, not to single requests
    is_per_request: ClassVar[bool] = True
    # True: notifications take the fault
    is_for_notifications: ClassVar[bool] = False

    async def answer(self, exchange: Exchange) -> None:
        """Answer a request, or act on its connection; by default the service answers."""
        exchange.send(await exchange.normal_answer(arrives=True))

    def delivery(self) -> Delivery:
        """Return what becomes of a notification."""
        return Delivery()


@dataclass(frozen=True)
class Status(Effect):
    """An answer of any status."""

    status: int = key(integer(200, 599), "the status of the answer, 200 to 599")
    headers: Mapping[str, str] = key(HEADERS, _HEADERS_MEANING, default=MappingProxyType({}))
    body: bytes | None = key(BODY, "the body; default: the error of the status", default=None)
    body_base64: bytes | None = key(BASE64, "the bytes of a body in base64, in place of body", default=None)
    content_type: str = key(HEADER_VALUE, "the header Content-Type", default="")
    retry_after: float | None = key(DURATION, "a duration, for the header Retry-After", default=None)
    retry_after_format: str = key(
        one_of("seconds", "date"), "seconds or date: the form of Retry-After", default="seconds"
    )

    def check(self) -> Found:
        """Yield the problem of two bodies."""
        if self.body is not None and self.body_base64 is not None:
            yield ("body_base64",), "give either body or body_base64, not both"

    async def answer(self, exchange: Exchange) -> None:
        answer = exchange.error(self.status)
        body = self.body if self.body_base64 is None else self.body_base64
        if body is not None:
            answer = answer._replace(body=body)
        headers = dict(self.headers)
        if self.retry_after is not None:
            as_date = self.retry_after_format == "date"
            headers["Retry-After"] = (
                http_date(exchange.now() + self.retry_after) if as_date else str(int(self.retry_after))
            )
        exchange.send(
            answer._replace(content_type=self.content_type or answer.content_type, headers=tuple(headers.items()))
        )


@dataclass(frozen=True)
class Redirect(Effect):
    """A redirection."""

    status: int = key(integer(200, 599), "the status of the answer, 200 to 599", default=302)
    location: str = key(HEADER_VALUE, "the header Location", default="http://127.0.0.1:9/")
    headers: Mapping[str, str] = key(HEADERS, _HEADERS_MEANING, default=MappingProxyType({}))

    async def answer(self, exchange: Exchange) -> None:
        headers = {**self.headers, "Location": self.location}
        exchange.send(exchange.error(self.status)._replace(body=b"", headers=tuple(headers.items())))


class Changed(Effect, ABC):
    """The normal answer with another body."""

    # True: the client gets the whole document
    arrives: ClassVar[bool] = False

    async def answer(self, exchange: Exchange) -> None:
        answer = await exchange.normal_answer(arrives=self.arrives, conditional=False)
        exchange.send(answer._replace(body=self.changed(answer.body)))

    @abstractmethod
    def changed(self, body: bytes) -> bytes:
        """Return the body that is sent in place of ``body``."""


class ByteOrderMark(Changed):
    """A body after a UTF-8 byte order mark."""

    def changed(self, body: bytes) -> bytes:
        return b"\xef\xbb\xbf" + body


class InvalidUtf8(Changed):
    """A body with bytes that are not UTF-8."""

    def changed(self, body: bytes) -> bytes:
        return body[:-1] + b',"Note":"\xff\xfe"}' if body.endswith(b"}") else b"\xff" + body


class CutJson(Changed):
    """A complete answer with half of the body."""

    def changed(self, body: bytes) -> bytes:
        return body[: len(body) // 2]


@dataclass(frozen=True)
class Oversized(Changed):
    """A body of ``size`` bytes."""

    arrives: ClassVar[bool] = True
    size: int = key(integer(1, 268435456), "the size of the body in bytes", default=16 * 1024 * 1024)

    def changed(self, body: bytes) -> bytes:
        return body.ljust(self.size)


@dataclass(frozen=True)
class Truncated(Effect):
    """The first ``keep`` bytes of the body; None: half of it."""

    keep: int | None = key(
        integer(0), "the number of bytes of the body that are sent; default: half of them", default=None
    )

    async def answer(self, exchange: Exchange) -> None:
        answer = await exchange.normal_answer(conditional=False)
        keep = max(1, len(answer.body) // 2) if self.keep is None else self.keep
        exchange.take_over()
        exchange.write(self.start(exchange, answer, keep) + answer.body[:keep])
        exchange.close()

    def start(self, exchange: Exchange, answer: Reply, keep: int) -> bytes:
        """Return what is sent before the body; at least one byte is missing, also of an empty body."""
        return exchange.head(answer, ("Content-Length", str(max(len(answer.body), keep + 1))))


class TruncatedChunked(Truncated):
    """As Truncated, in a chunk that does not end."""

    def start(self, exchange: Exchange, answer: Reply, keep: int) -> bytes:
        return exchange.head(answer, ("Transfer-Encoding", "chunked")) + b"%x\r\n" % len(answer.body)


@dataclass(frozen=True)
class Trickle(Effect):
    """The normal answer, a few bytes per real second, from its ``part`` "header" or "body" on."""

    bytes_per_second: float = key(_POSITIVE, "the rate in real time", default=1.0)
    part: str = key(one_of("header", "body"), "header or body: the part of the answer that is slow", default="body")

    async def answer(self, exchange: Exchange) -> None:
        answer = await exchange.normal_answer(conditional=False)
        exchange.take_over()
        head, slow = exchange.head(answer, ("Content-Length", str(len(answer.body)))), answer.body
        if self.part == "header":
            slow = head + slow
        else:
            exchange.write(head)
        rate = max(0.01, self.bytes_per_second)
        size = max(1, int(rate * _INTERVAL))
        for position in range(0, len(slow), size):
            if not exchange.is_open():
                return
            exchange.write(slow[position : position + size])
            await asyncio.sleep(size / rate)
        exchange.close()


class Hang(Effect):
    """No answer until the client disconnects or the fault is over."""

    async def answer(self, exchange: Exchange) -> None:
        exchange.take_over()
        while exchange.is_open() and exchange.is_fault_active():
            await asyncio.sleep(_INTERVAL)
        exchange.close()


@dataclass(frozen=True)
class Delay(Effect):
    """The normal answer after ``delay`` simulated seconds."""

    is_for_notifications: ClassVar[bool] = True
    delay: float = key(DURATION, "a duration, before the service acts", default=10.0)

    async def answer(self, exchange: Exchange) -> None:
        await exchange.wait(self.delay)
        await super().answer(exchange)

    def delivery(self) -> Delivery:
        return Delivery(delay=self.delay)


class Reset(Effect):
    """The connection is reset before the service acts."""

    async def answer(self, exchange: Exchange) -> None:
        exchange.reset()


class Refuse(Reset):
    """Connections are refused, because the server closes the listening socket; requests in progress are reset."""

    is_per_request: ClassVar[bool] = False


class LostRequest(Reset):
    """A request that the service does not receive."""

    is_for_notifications: ClassVar[bool] = True

    def delivery(self) -> Delivery:
        return Delivery(is_sent=False, is_answered=False)


class LostAnswer(Effect):
    """A request that the service receives, and an answer that the client does not receive."""

    is_for_notifications: ClassVar[bool] = True

    async def answer(self, exchange: Exchange) -> None:
        await exchange.normal_answer()
        exchange.reset()

    def delivery(self) -> Delivery:
        return Delivery(is_answered=False)


@dataclass(frozen=True)
class DateSkew(Effect):
    """The normal answer with a Date that is ``skew`` seconds off."""

    skew: float = key(SIGNED_DURATION, "a duration, which is added to Date; may be negative", default=1200.0)

    async def answer(self, exchange: Exchange) -> None:
        exchange.send(await exchange.normal_answer(arrives=True), self.skew)


@dataclass(frozen=True)
class CloseIdle(Effect):
    """The normal answer; the server closes the kept-alive connection ``idle`` simulated seconds later."""

    idle: float = key(DURATION, "a duration, after which the connection is closed", default=0.05)

    async def answer(self, exchange: Exchange) -> None:
        await super().answer(exchange)
        exchange.close_after(self.idle)
