# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's log, by Python's logging: entries with fields for journald, or lines for standard error."""

from __future__ import annotations

import logging
import os
import select
import socket
import sys
from typing import Any, Mapping, TextIO

from azure_scheduled_events.printable import printable

# between info and warning, as syslog has it
NOTICE = 25
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": NOTICE,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
# of syslog
_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, NOTICE: 5, logging.WARNING: 4, logging.ERROR: 3}
JOURNALD_SOCKET = "/run/systemd/journal/socket"


def log_to(handler: logging.Handler) -> None:
    """Send the log of the daemon to this handler alone."""
    logging.addLevelName(NOTICE, "NOTICE")
    logger = logging.getLogger("hook_runner")
    logger.handlers[:], logger.propagate = [handler], False


def set_level(name: str) -> None:
    """Log nothing below this level, one of LEVELS."""
    logging.getLogger("hook_runner").setLevel(LEVELS[name])


def with_fields(**fields: object) -> Mapping[str, Any]:
    """Return ``extra`` of a line: searchable fields in journald (``journalctl AZURE_EVENT_ID=...``), else text."""
    return {"fields": {name.upper(): printable(str(value)) for name, value in fields.items()}}


class LogHandler(logging.Handler):
    """Writes lines without waiting for a reader: a line that is not taken at once is dropped and counted.

    ``stream`` gets the lines without journald; standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream
        self._journal = _journal() if stream is None else None
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and before it how many were lost."""
        lost = f"{self._dropped} lines were lost: the reader was too slow"
        if self._dropped and self._deliver(logging.WARNING, lost, {}):
            self._dropped = 0
        if not self._deliver(record.levelno, printable(record.getMessage()), getattr(record, "fields", {})):
            self._dropped += 1

    def _deliver(self, level: int, text: str, fields: Mapping[str, str]) -> bool:
        """Write a line; return False if the reader does not take it now."""
        if self._journal is not None:
            entry = {
                "MESSAGE": text,
                "PRIORITY": _PRIORITIES[level],
                "SYSLOG_IDENTIFIER": "azure-scheduled-events",
                **fields,
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
        words = [text, *(f"{name}={value}" for name, value in fields.items())]
        try:
            return _write(f"{logging.getLevelName(level).lower():7} {' '.join(words)}\n", self._stream or sys.stderr)
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
