# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Server-sent events: the data of the page to every browser that has it open.

The data is computed once for all clients, only while there is one, and at most twice a second. Each client has a
short queue. A client that does not read gets no further changes; when it reads again, it gets all data again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from typing import Any

from aiohttp import web

from .data import PageData

# real seconds between two updates, after a request to the control API, and without a change
INTERVAL = 0.5
MIN_INTERVAL = 0.1
HEARTBEAT = 2.0
# computing an update may take at most this share of a core
_MAX_SHARE = 0.05
MAX_CLIENTS = 32
MAX_QUEUE = 8
# real seconds that one write may take; then the connection is closed
WRITE_TIMEOUT = 60.0


class _Client:
    """One browser; ``behind``: it needs all data."""

    def __init__(self) -> None:
        self.queue: deque[bytes] = deque()
        self.ready = asyncio.Event()
        self.ready.set()
        self.behind = True

    def put(self, message: bytes) -> None:
        """Queue a message; never waits."""
        if len(self.queue) >= MAX_QUEUE:
            self.queue.clear()
            self.behind = True
        if not self.behind:
            self.queue.append(message)
        self.ready.set()


class Stream:
    """Sends ``data`` and its changes to the clients."""

    def __init__(self, data: PageData) -> None:
        self._data = data
        self._clients: set[_Client] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._snapshot: bytes | None = None

    def wake(self) -> None:
        """Send an update soon, because a request to the control API may have changed the data."""
        self._wake.set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Send all data and then changes, until the client disconnects.

        Raises:
            web.HTTPServiceUnavailable: there are too many clients.
        """
        if len(self._clients) >= MAX_CLIENTS:
            raise web.HTTPServiceUnavailable(
                reason=f"{MAX_CLIENTS} pages are open; close one of them", headers={"Retry-After": "5"}
            )
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        client = _Client()
        if not self._clients:
            self._update()
        self._clients.add(client)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            await answer.prepare(request)
            await self._send_all(client, answer)
        except asyncio.TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            pass
        finally:
            self._clients.discard(client)
        return answer

    async def close(self) -> None:
        """Stop computing updates."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self, client: _Client, answer: web.StreamResponse) -> None:
        while True:
            await client.ready.wait()
            client.ready.clear()
            while client.behind or client.queue:
                if client.behind:
                    client.behind = False
                    message = self._whole()
                else:
                    message = client.queue.popleft()
                await asyncio.wait_for(answer.write(message), WRITE_TIMEOUT)

    async def _run(self) -> None:
        """Compute and send updates while there are clients."""
        loop = asyncio.get_running_loop()
        last_sent = 0.0
        while self._clients:
            began = loop.time()
            changes = self._update()
            if changes or began - last_sent >= HEARTBEAT:
                last_sent = began
                message = _message("update", {"clock": self._data.clock(), **changes})
                for client in self._clients:
                    client.put(message)
            cost = loop.time() - began
            self._wake.clear()
            await asyncio.sleep(max(MIN_INTERVAL, cost / _MAX_SHARE))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), INTERVAL - MIN_INTERVAL)

    def _update(self) -> dict[str, Any]:
        changes = self._data.update()
        if changes:
            self._snapshot = None
        return changes

    def _whole(self) -> bytes:
        """Return all data; it is encoded once for all clients that need it."""
        if self._snapshot is None:
            self._snapshot = _message("snapshot", self._data.whole())
        return _message("clock", self._data.clock()) + self._snapshot


def _message(event: str, data: dict[str, Any]) -> bytes:
    # JSON in ASCII has no line break
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")
