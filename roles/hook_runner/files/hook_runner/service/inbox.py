# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The queue from the poller's thread to the main loop, with a descriptor that wakes the loop."""

from __future__ import annotations

import collections
import contextlib
import socket
from typing import Callable, Iterator

from hook_runner.runner import Runner

# what the main loop does for the poller: it calls a method of the runner
Message = Callable[[Runner], None]


class Inbox:
    """Messages that the main loop has not handled yet."""

    def __init__(self) -> None:
        self._messages: collections.deque[Message] = collections.deque()
        self._wake_writer, self._wake_reader = socket.socketpair()
        for end in (self._wake_writer, self._wake_reader):
            end.setblocking(False)

    def put(self, message: Message) -> None:
        """Add a message and wake the main loop. For any thread."""
        self._messages.append(message)
        with contextlib.suppress(BlockingIOError):  # the buffer is full; therefore the loop is awake already
            self._wake_writer.send(b"\0")

    def take(self) -> Iterator[Message]:
        """Remove and yield the present messages, the oldest first.

        Later ones wait for the next call: a slow main loop must also handle control requests.
        """
        with contextlib.suppress(BlockingIOError):
            while self._wake_reader.recv(4096):
                pass
        for _number in range(len(self._messages)):
            yield self._messages.popleft()

    def fileno(self) -> int:
        """Return the descriptor for poll(2): readable after `put` or a signal."""
        return self._wake_reader.fileno()

    def wakeup_fd(self) -> int:
        """Return the descriptor for signal.set_wakeup_fd()."""
        return self._wake_writer.fileno()
