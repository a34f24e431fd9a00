# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the watch of IMDS in a thread beside the event loop of a rulebook."""

from __future__ import annotations

import asyncio
import threading
import typing as t

from ...module_utils.azure_scheduled_events.transport import REQUESTS_IMPORT_ERROR
from .imds_watch import LOGGER, ImdsWatch
from .source_options import parse_arguments

# seconds before the next poll after an error of this program
_PAUSE_AFTER_ERROR = 30.0


class Queue(t.Protocol):
    """The queue of a source in ansible-rulebook."""

    async def put(self, event: dict[str, t.Any]) -> None:
        """Deliver an event to the filters and the rules."""


async def run(queue: Queue, args: t.Mapping[str, t.Any]) -> None:
    """Deliver one event per change until the task is cancelled.

    Never returns, because ansible-rulebook ends when the main function of a source returns.

    Raises:
        ValueError: an argument is unusable.
        ImportError: the library requests is missing.
        Exception: the queue did not take an event, because a filter failed.
    """
    if REQUESTS_IMPORT_ERROR is not None:
        raise ImportError(
            "azure_imds.scheduled_events.scheduled_events: no library requests; install it for this Python"
        )
    watch = ImdsWatch(parse_arguments(args))
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    thread = _PollThread(watch, queue, asyncio.get_running_loop(), failed)
    thread.start()
    try:
        await failed
    finally:
        thread.stopped.set()


class _PollThread(threading.Thread):
    """Polls beside the event loop. A daemon thread: the end of ansible-rulebook does not wait for an answer of IMDS.

    ``failed`` gets the exception of a queue that does not take an event.
    """

    def __init__(
        self, watch: ImdsWatch, queue: Queue, loop: asyncio.AbstractEventLoop, failed: asyncio.Future[None]
    ) -> None:
        super().__init__(name="scheduled-events", daemon=True)
        self._watch, self._queue, self._loop, self._failed = watch, queue, loop, failed
        self.stopped = threading.Event()

    def run(self) -> None:
        """Poll until the source is stopped or the queue has failed."""
        while not self.stopped.is_set():
            found, pause = self._poll()
            if found and not self._deliver(found):
                break
            self.stopped.wait(pause)
        self._watch.close()

    def _poll(self) -> tuple[list[dict[str, t.Any]], float]:
        try:
            return self._watch.poll()
        except Exception:  # pylint: disable=broad-exception-caught  # no error may end the thread, which would miss the next event
            LOGGER.exception("scheduled events: the poll caused an error of this program; the source retries")
            return [], _PAUSE_AFTER_ERROR

    def _deliver(self, found: list[dict[str, t.Any]]) -> bool:
        """Put the changes into the queue, and wait for it: polls do not run ahead of the rules."""

        async def put_all() -> None:
            for change in found:
                await self._queue.put({"scheduled_event": change})

        try:
            asyncio.run_coroutine_threadsafe(put_all(), self._loop).result()
        except BaseException as error:  # pylint: disable=broad-exception-caught  # the event loop raises it
            if not self.stopped.is_set():
                self._loop.call_soon_threadsafe(self._fail, error)
            return False
        return True

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)
