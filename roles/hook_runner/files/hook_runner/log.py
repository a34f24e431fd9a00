# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's log: entries with fields for journald, or lines for standard error."""

from __future__ import annotations

import os
import select
import socket
import sys
from typing import TextIO

from azure_scheduled_events.printable import printable

PRIORITIES = {"debug": 7, "info": 6, "notice": 5, "warning": 4, "error": 3}
JOURNALD_SOCKET = "/run/systemd/journal/socket"


class Log:
    """Writes lines without waiting for a reader: a line that is not taken at once is dropped and counted.

    Args:
        threshold: the lowest level that is logged, one of PRIORITIES.
        stream: gets the lines without journald; standard error by default.
    """

    def __init__(self, threshold: str = "info", stream: TextIO | None = None) -> None:
        self.threshold = threshold
        self._stream = stream
        self._journal = _journal() if stream is None else None
        self._dropped = 0

    def write(self, level: str, text: str, **fields: object) -> None:
        """Log one line.

        ``fields`` are searchable in journald (``journalctl AZURE_EVENT_ID=...``); elsewhere they
        follow the text.
        """
        if PRIORITIES[level] > PRIORITIES[self.threshold]:
            return
        if self._dropped and self._deliver("warning", f"{self._dropped} lines were lost: the reader was too slow", {}):
            self._dropped = 0
        text = printable(text)
        named = {name.upper(): printable(str(value)) for name, value in fields.items()}
        if not self._deliver(level, text, named):
            self._dropped += 1

    def _deliver(self, level: str, text: str, named: dict[str, str]) -> bool:
        """Write a line; return False if the reader does not take it now.

        1. It goes to journald, if standard error leads there. If journald is stuck, the line is not taken.
        2. Otherwise, and after any other error of journald, it goes to the stream, whose reader may not take it
           either.
        3. A line whose reader has ended counts as taken.
        """
        if self._journal is not None:
            entry = {
                "MESSAGE": text,
                "PRIORITY": PRIORITIES[level],
                "SYSLOG_IDENTIFIER": "azure-scheduled-events",
                **named,
            }
            # no value has more than one line
            data = "".join(f"{name}={value}\n" for name, value in entry.items()).encode("utf-8", "backslashreplace")
            try:
                self._journal.send(data, socket.MSG_DONTWAIT)
                return True
            except BlockingIOError:
                return False  # journald is stuck, and the stream leads to journald as well
            except OSError:
                pass  # journald restarts, or the line is too long for a datagram; the stream still reaches it
        line = f"{level:7} " + " ".join([text] + [f"{name}={value}" for name, value in named.items()])
        try:
            return _write(line + "\n", self._stream or sys.stderr)
        except (OSError, ValueError):
            return True  # the reader has ended; the daemon goes on


def _write(line: str, stream: TextIO) -> bool:
    """Write a line without waiting; return False if its reader did not take all of it."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        print(line, end="", file=stream, flush=True)  # a stream in memory
        return True
    asked = select.poll()
    asked.register(descriptor, select.POLLOUT)
    data = line.encode("utf-8", "backslashreplace")
    while data:
        if not asked.poll(0):
            return False
        # poll(2) guarantees space for this many bytes in a pipe
        data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]
    return True


def _journal() -> socket.socket | None:
    """Return a socket to journald if standard error leads there, or None."""
    try:
        device, inode = os.environ.get("JOURNAL_STREAM", "").split(":")
        found = os.fstat(2)
        if (int(device), int(inode)) != (found.st_dev, found.st_ino):
            return None
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.connect(JOURNALD_SOCKET)
    except (OSError, ValueError):
        return None
    return journal
