# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The queue from the other threads to the main loop, with a descriptor that wakes the loop."""

from __future__ import annotations

import collections
import socket
from collections.abc import Iterator

from hook_runner.service.poller import PollerEvent


class Inbox:
    """Events of the poller that the main loop has not handled yet."""

    def __init__(self) -> None:
        self._events: collections.deque[PollerEvent] = collections.deque()
        self._wake_writer, self._wake_reader = socket.socketpair()
        for end in (self._wake_writer, self._wake_reader):
            end.setblocking(False)

    def put(self, event: PollerEvent) -> None:
        """Add an event and wake the main loop. For any thread."""
        self._events.append(event)
        try:
            self._wake_writer.send(b"\0")
        except BlockingIOError:
            pass  # the buffer is full; therefore the loop is awake already

    def take(self) -> Iterator[PollerEvent]:
        """Remove and yield the present events, the oldest first.

        Later ones wait for the next call: a slow main loop must also handle control requests.
        """
        self.drain()
        for _number in range(len(self._events)):
            yield self._events.popleft()

    def drain(self) -> None:
        """Discard the bytes that made the descriptor readable."""
        try:
            while self._wake_reader.recv(4096):
                pass
        except BlockingIOError:
            pass

    def fileno(self) -> int:
        """Return the descriptor for poll(2): readable after `put` or a signal."""
        return self._wake_reader.fileno()

    def wakeup_fd(self) -> int:
        """Return the descriptor for signal.set_wakeup_fd()."""
        return self._wake_writer.fileno()
