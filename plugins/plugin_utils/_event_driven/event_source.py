# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the watch of IMDS in a thread beside the event loop of a rulebook."""

from __future__ import annotations

import asyncio
import threading
import typing as t

from .imds_watch import LOGGER, ImdsWatch
from .source_options import parse_options

# seconds before the next poll after an error of this program
_PAUSE_AFTER_ERROR = 30.0


class Queue(t.Protocol):
    """The queue of a source in ansible-rulebook."""

    async def put(self, event: dict[str, t.Any]) -> None:
        """Deliver an event to the filters and the rules."""


async def run(queue: Queue, args: t.Mapping[str, t.Any]) -> None:
    """Deliver one event per change until the task is cancelled.

    Returns never, because ansible-rulebook ends when the main function of a source returns.

    Args:
        queue: takes the events.
        args: the arguments of the source.

    Raises:
        ValueError: an argument is unusable.
        Exception: the queue did not take an event, because a filter failed.
    """
    watch = ImdsWatch(parse_options(args))
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    stopped = threading.Event()

    async def deliver(found: list[dict[str, t.Any]]) -> None:
        for change in found:
            await queue.put({"scheduled_event": change})

    def fail(error: BaseException) -> None:
        if not failed.done():
            failed.set_exception(error)

    def poll_until_stopped() -> None:
        while not stopped.is_set():
            try:
                found, pause = watch.poll()
            except Exception:  # no error may end the thread, which would miss the next event
                LOGGER.exception("scheduled events: the poll caused an error of this program; the source retries")
                found, pause = [], _PAUSE_AFTER_ERROR
            try:
                if found:
                    # the thread waits, so that no further poll runs ahead of the rules
                    asyncio.run_coroutine_threadsafe(deliver(found), loop).result()
            except BaseException as error:
                if not stopped.is_set():
                    loop.call_soon_threadsafe(fail, error)
                break
            stopped.wait(pause)
        watch.close()

    # a daemon thread: the end of ansible-rulebook does not wait for an answer of IMDS
    threading.Thread(target=poll_until_stopped, name="scheduled-events", daemon=True).start()
    try:
        await failed
    finally:
        stopped.set()
