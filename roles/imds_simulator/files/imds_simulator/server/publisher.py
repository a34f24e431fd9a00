# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Publishes notifications to a web hook in the background (docs/reference/scheduled-events.md 5.11)."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import uuid
from collections.abc import Mapping
from typing import Callable, NamedTuple

import aiohttp

from ..faults.effects import Delivery
from ..faults.fault import NOTIFY_ROUTE
from ..faults.registry import FaultRegistry
from ..http_reply import parse_json
from ..model.events import Occurrence
from ..model.world import World
from ..protocol.event_grid import WebHookRequest, handshake, is_validated, notification
from ..protocol.resource_ids import ResourceIds
from ..scenario.notify import Notify
from .clock import Clock

# simulated seconds until the next attempt, after the first, second, ... one
RETRY_DELAYS = (10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
# the web hook does not want the notification; another attempt would not help
FINAL_STATUSES = frozenset((400, 401, 403, 413))
SUCCESS_STATUSES = frozenset((200, 201, 202, 203, 204))
# real seconds for one request
TIMEOUT = 30.0
# notifications that wait for their turn or for another attempt; further ones are dropped
MAX_PENDING = 10_000
_MAX_ANSWER = 65536
_Log = Callable[..., None]


class _Delivery(NamedTuple):
    """A notification and the number of its next attempt.

    ``vm`` is the first VM of its Resources. ``delayed``: a fault has delayed this attempt.
    """

    notification: WebHookRequest
    vm: str
    attempt: int = 1
    delayed: bool = False


class _Answer(NamedTuple):
    """The answer of the web hook; ``status`` 0: there was none, for the reason ``error``."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    error: str


class Publisher:
    """Sends the notifications of a running simulator.

    Requests are sent one after another, in the order of the occurrences. A notification that failed, or
    that has a random delay, takes its turn again later; random delays and repetitions follow the simulator's clock.
    """

    def __init__(
        self, notify: Notify, world: World, ids: ResourceIds, clock: Clock, faults: FaultRegistry, log: _Log
    ) -> None:
        self._notify = notify
        self._world = world
        self._ids = ids
        self._clock = clock
        self._faults = faults
        self._log = log
        self._random = random.Random(notify.seed)
        # (moment when it is due, a number that keeps the order, delivery)
        self._waiting: list[tuple[float, int, _Delivery]] = []
        self._queued = 0
        self._more = asyncio.Event()
        self._refused = False

    def publish(self, occurrence: Occurrence) -> None:
        """Queue the notification about ``occurrence``, if Event Grid publishes one; never waits."""
        made = notification(occurrence, self._new_id(), self._notify.schema, self._ids, self._world.vms)
        if made is None or self._refused:
            return
        copies = 2 if self._random.random() < self._notify.duplicates else 1
        for _copy in range(copies):
            delay = self._random.uniform(0, self._notify.disorder)
            if len(self._waiting) >= MAX_PENDING:
                self._log("notification", result="dropped", error="too many notifications wait", **made.fields)
            else:
                self._queue_after(delay, _Delivery(made, occurrence.detail["resources"][0]))

    async def run(self) -> None:
        """Send, until cancelled: that ends the request that runs, and notifications that wait are not sent."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT)
        # no cookies between requests, and no proxy from the environment
        async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
            if self._notify.validate and not await self._pass_handshake(session):
                self._refused = True
                self._waiting.clear()
                return
            while True:
                await self._send(session, await self._next())

    async def _next(self) -> _Delivery:
        """Wait for the delivery that is due first, and return it."""
        while not self._waiting or self._waiting[0][0] > self._clock.now():
            await self._clock.wait(self._waiting[0][0] if self._waiting else math.inf, self._more)
        return heapq.heappop(self._waiting)[2]

    async def _send(self, session: aiohttp.ClientSession, delivery: _Delivery) -> None:
        made, attempt = delivery.notification, delivery.attempt
        active = None
        if not delivery.delayed:
            active = self._faults.match(delivery.vm, NOTIFY_ROUTE, "POST", self._clock.now())
        effect = active.fault.effect.delivery() if active is not None else Delivery()
        if effect.delay:
            self._queue_after(effect.delay, delivery._replace(delayed=True))
            return
        answer = _Answer(0, {}, b"", f"fault {active.fault.kind}" if active is not None else "")
        if effect.is_sent:
            headers = {**made.headers, "aeg-delivery-count": str(attempt - 1)}
            sent = await self._request(session, made._replace(headers=headers))
            answer = sent if effect.is_answered else answer
        if answer.status in SUCCESS_STATUSES:
            result = "delivered"
        elif answer.status in FINAL_STATUSES or attempt >= self._notify.attempts:
            result = "failed"
        else:
            result = "again"
        self._log(
            "notification", result=result, status_code=answer.status, error=answer.error, attempt=attempt, **made.fields
        )
        if result == "again":
            self._queue_after(_delay_after(attempt), delivery._replace(attempt=attempt + 1, delayed=False))

    async def _pass_handshake(self, session: aiohttp.ClientSession) -> bool:
        """Return True when the web hook permits notifications, False after the last attempt."""
        code = self._new_id().upper()
        first_vm = next(iter(self._world.vms))
        topic = f"/subscriptions/{self._ids.identity(first_vm).subscription}"
        for attempt in range(1, self._notify.attempts + 1):
            if attempt > 1:
                await self._clock.wait_until(self._moment_after(_delay_after(attempt - 1)))
            made = handshake(self._notify.schema, code, self._clock.now(), topic)
            answer = await self._request(session, made)
            passed = is_validated(self._notify.schema, code, answer.status, answer.headers, parse_json(answer.body))
            self._log(
                "notification-handshake",
                result="passed" if passed else "failed",
                status_code=answer.status,
                error=answer.error,
                attempt=attempt,
            )
            if passed:
                return True
        return False

    async def _request(self, session: aiohttp.ClientSession, made: WebHookRequest) -> _Answer:
        headers = {**made.headers, **self._notify.headers}
        try:
            async with session.request(
                made.method, self._notify.url, data=made.body, headers=headers, allow_redirects=False
            ) as answer:
                return _Answer(answer.status, answer.headers, await _first_bytes(answer.content), "")
        except asyncio.TimeoutError:
            return _Answer(0, {}, b"", f"no answer within {TIMEOUT:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _Answer(0, {}, b"", str(error) or type(error).__name__)

    def _queue_after(self, simulated: float, delivery: _Delivery) -> None:
        self._queued += 1
        heapq.heappush(self._waiting, (self._moment_after(simulated), self._queued, delivery))
        self._more.set()

    def _moment_after(self, simulated: float) -> float:
        return self._clock.now() + self._world.to_wall_seconds(simulated)

    def _new_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


async def _first_bytes(content: aiohttp.StreamReader) -> bytes:
    """Return the whole content, or the first _MAX_ANSWER bytes of a longer one."""
    try:
        return await content.readexactly(_MAX_ANSWER)
    except asyncio.IncompleteReadError as error:
        return error.partial


def _delay_after(attempt: int) -> float:
    return RETRY_DELAYS[min(attempt, len(RETRY_DELAYS)) - 1]
