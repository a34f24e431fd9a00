# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's log: entries with fields for journald, or lines of text or JSON for standard error."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time
from typing import TextIO

from azure_scheduled_events.printable import printable

PRIORITIES = {"debug": 7, "info": 6, "notice": 5, "warning": 4, "error": 3}
JOURNALD_SOCKET = "/run/systemd/journal/socket"


class Log:
    """Writes lines without waiting for a reader: a line that is not taken at once is dropped and counted.

    Args:
        threshold: the lowest level that is logged, one of PRIORITIES.
        stream: gets the lines without journald; standard error by default.

    `as_json` makes each line, and each MESSAGE of journald, a JSON object.
    """

    def __init__(self, threshold: str = "info", stream: TextIO | None = None) -> None:
        self.threshold = threshold
        self.as_json = False
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
        """Write a line; return False if the reader does not take it now."""
        line = json_line(level, text, named) if self.as_json else None
        if self._journal is not None:
            entry = {
                "MESSAGE": line or text,
                "PRIORITY": str(PRIORITIES[level]),
                "SYSLOG_IDENTIFIER": "azure-scheduled-events",
                **named,
            }
            try:
                self._journal.send(b"".join(_field(name, value) for name, value in entry.items()), socket.MSG_DONTWAIT)
                return True
            except BlockingIOError:
                return False  # journald is stuck, and the stream leads to journald as well
            except OSError:
                pass  # journald restarts, or the line is too long for a datagram; the stream still reaches it
        if line is None:
            line = f"{level:7} " + " ".join([text] + [f"{name}={value}" for name, value in named.items()])
        try:
            return _write(line + "\n", self._stream or sys.stderr)
        except (OSError, ValueError):
            return True  # the reader has ended; the daemon goes on


def json_line(level: str, text: str, named: dict[str, str]) -> str:
    """Return an entry as one JSON object in ASCII; the time is that of the host, in UTC."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
    fields = {name.lower(): value for name, value in named.items()}
    return json.dumps({"time": stamp, "level": level, "message": text, **fields})


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


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "backslashreplace")
    return name.encode("ascii") + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"


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
