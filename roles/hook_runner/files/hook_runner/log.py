# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's log: journald's own fields where journald listens, lines of text elsewhere."""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from typing import TextIO

from azure_scheduled_events.document import escape_surrogates

PRIORITIES = {"debug": 7, "info": 6, "notice": 5, "warning": 4, "error": 3}
JOURNALD_SOCKET = "/run/systemd/journal/socket"


def printable(text: str) -> str:
    """The text on one line, without anything that could steer a terminal: no control and format characters, no half ones."""
    return "".join(character if character.isprintable() else "?" for character in escape_surrogates(text))


class Log:
    """Says one line at a time, and waits for nobody: what is not taken at once is dropped, and counted.

    Args:
        threshold: the least level that is said, one of PRIORITIES.
        stream: where lines go when journald does not listen; standard error by default.
    """

    def __init__(self, threshold: str = "info", stream: TextIO | None = None) -> None:
        self.threshold = threshold
        self._stream = stream
        self._journal = _journal() if stream is None else None
        self._dropped = 0

    def write(self, level: str, text: str, **fields: object) -> None:
        """Say a line; ``fields`` are searchable in journald (``journalctl AZURE_EVENT_ID=...``) and follow the text elsewhere."""
        if PRIORITIES[level] > PRIORITIES[self.threshold]:
            return
        if self._dropped and self._deliver("warning", f"{self._dropped} lines were lost, since nobody took them", {}):
            self._dropped = 0
        text = printable(text)
        named = {name.upper(): printable(str(value)) for name, value in fields.items()}
        if not self._deliver(level, text, named):
            self._dropped += 1

    def _deliver(self, level: str, text: str, named: dict[str, str]) -> bool:
        """Hand a line over; False where nobody takes it now."""
        if self._journal is not None:
            entry = {
                "MESSAGE": text,
                "PRIORITY": str(PRIORITIES[level]),
                "SYSLOG_IDENTIFIER": "azure-scheduled-events",
                **named,
            }
            try:
                self._journal.send(b"".join(_field(name, value) for name, value in entry.items()), socket.MSG_DONTWAIT)
                return True
            except BlockingIOError:
                return False  # it is stuck, and so would be the stream, which leads to the same
            except OSError:
                pass  # journald restarts, or the line is too long for it: the stream reaches it all the same
        line = " ".join([text] + [f"{name}={value}" for name, value in named.items()])
        try:
            return _write(f"{level:7} {line}\n", self._stream or sys.stderr)
        except (OSError, ValueError):
            return True  # nobody listens any more, which must not stop the work


def _write(line: str, stream: TextIO) -> bool:
    """Write a line without waiting for whoever reads it; False where it, or its end, was not taken."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        print(line, end="", file=stream, flush=True)  # it is in memory
        return True
    asked = select.poll()
    asked.register(descriptor, select.POLLOUT)
    data = line.encode("utf-8", "backslashreplace")
    while data:
        if not asked.poll(0):
            return False
        # what a pipe that takes more takes for sure
        data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]
    return True


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "backslashreplace")
    return name.encode("ascii") + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"


def _journal() -> socket.socket | None:
    """A socket to journald, when that is what standard error leads to."""
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
