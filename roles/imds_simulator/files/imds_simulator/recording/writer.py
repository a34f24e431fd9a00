# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Appends lines to a recording so that it stays readable after a kill and on a full disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .lines import Header, header_data
from .reader import Recording, Unusable, parse


class CannotWrite(Exception):
    """A line cannot be written; the recording ends with its last whole line. The text names the file."""


class RecordingFile:
    """An open recording.

    ``before`` is the content that the file had when it was opened, or None for a new file; ``lines`` is the number of
    lines in the file.
    """

    def __init__(self, descriptor: int, name: str, before: Recording | None, lines: int, size: int) -> None:
        self.name = name
        self.before = before
        self.lines = lines
        self._descriptor = descriptor
        self._size = size

    def append(self, data: Mapping[str, Any], durable: bool) -> None:
        """Write one line.

        ``durable``: wait until the disk has it; a line that refers to an earlier one can do without.

        Raises:
            CannotWrite: the disk is full, for example.
        """
        line = json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            if durable:
                os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise CannotWrite(
                f"{self.name}: {error.strerror}; the file ends with its last whole line, free some space and "
                "run the same command to continue it"
            ) from None
        self._size += len(line)
        self.lines += 1

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def open_recording(file: Path, header: Header) -> RecordingFile:
    """Open a recording to append to it, or create it with ``header``.

    Only the owner can read the file. A last line that is not complete is removed.

    Raises:
        Unusable: the file is not a recording, is anonymised otherwise than ``header``, is written by another
            process, or cannot be opened.
        CannotWrite: the header cannot be written.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror}; choose another --output") from None
    try:
        return _opened(descriptor, file, header)
    except BaseException:
        os.close(descriptor)
        raise


def _opened(descriptor: int, file: Path, header: Header) -> RecordingFile:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise Unusable(f"{file}: not a regular file; choose another --output")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise Unusable(f"{file}: {error.strerror}; choose another --output") from None
        raise Unusable(f"{file}: another process is writing this recording; choose another --output") from None
    size = os.fstat(descriptor).st_size
    if size == 0:
        return _new(descriptor, file, header)
    with os.fdopen(os.dup(descriptor), "rb") as content:
        whole = content.read()
    complete = whole[: whole.rfind(b"\n") + 1]
    before = parse(complete.splitlines(keepends=True) or [whole], str(file))
    if before.header.anonymised != header.anonymised:
        state = "anonymised" if before.header.anonymised else "not anonymised"
        remedy = "add --anonymise" if before.header.anonymised else "leave --anonymise out"
        raise Unusable(f"{file}: this recording is {state}; {remedy}, or choose another --output")
    if len(complete) < size:
        os.ftruncate(descriptor, len(complete))
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, 0o600)
    return RecordingFile(descriptor, str(file), before, complete.count(b"\n"), len(complete))


def _new(descriptor: int, file: Path, header: Header) -> RecordingFile:
    os.ftruncate(descriptor, 0)
    os.fchmod(descriptor, 0o600)
    opened = RecordingFile(descriptor, str(file), None, 0, 0)
    opened.append(header_data(header), durable=True)
    return opened
