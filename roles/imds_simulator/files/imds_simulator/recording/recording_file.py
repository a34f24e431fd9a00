# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Appends lines to a recording so that it stays readable after a kill and on a full disk."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

FIRST_LINE = b'{"format":"imds-recording/1"}\n'
_KEY_SIZE = 32


class Unusable(Exception):
    """The file is not a recording, or cannot be opened; the text names the file."""


class RecordingFile:
    """An open recording. ``key`` is the secret of its pseudonyms."""

    def __init__(self, stream: IO[bytes], key: bytes) -> None:
        self.key = key
        self._stream = stream

    def append(self, line: bytes) -> None:
        """Write a line and wait until the disk has it; after an OSError the file ends with its last whole line."""
        file = self._stream.fileno()
        size = os.fstat(file).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(file, line[written:])
            os.fsync(file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file, size)
            raise


@contextlib.contextmanager
def open_recording(file: Path) -> Iterator[RecordingFile]:
    """Open a recording to append to it, or create it and its key, for the owner only.

    A last line that is not complete is removed.

    Raises:
        Unusable: the file is not a recording, another process writes it, its key is missing, or it cannot be opened.
        OSError: the first line cannot be written.
    """
    # not on Windows, where a recording can be replayed
    import fcntl

    with contextlib.ExitStack() as stack:
        try:
            if file.exists() and not file.is_file():
                raise Unusable(f"{file}: not a regular file; choose another --output")
            stream = stack.enter_context(open(file, "a+b", opener=_open_private))
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stream.seek(0)
            first = stream.readline(len(FIRST_LINE))
            if first not in (b"", FIRST_LINE):
                raise Unusable(f"{file}: not a recording; choose another --output")
            size = len(first) + sum(len(line) for line in stream if line.endswith(b"\n"))
            key = _key(key_file(file), is_new=not first)
            stream.truncate(size)
            os.fchmod(stream.fileno(), 0o600)
        except BlockingIOError:
            raise Unusable(f"{file}: another process is writing this recording; choose another --output") from None
        except OSError as error:
            raise Unusable(f"{error.filename or file}: {error.strerror}; choose another --output") from None
        opened = RecordingFile(stream, key)
        if not first:
            opened.append(FIRST_LINE)
        yield opened


def key_file(recording: Path) -> Path:
    """Return the file with the key of ``recording``."""
    return recording.with_name(recording.name + ".key")


def _key(file: Path, is_new: bool) -> bytes:
    """Return the key in ``file``; create it for a new recording, unless the user has copied that of another one."""
    if is_new and not (file.exists() and file.stat().st_size):
        with open(file, "wb", opener=_open_private) as created:
            created.write(secrets.token_bytes(_KEY_SIZE))
            created.flush()
            os.fsync(created.fileno())
    key = file.read_bytes()
    if len(key) != _KEY_SIZE:
        raise Unusable(f"{file}: not a key of {_KEY_SIZE} bytes; choose another --output")
    return key


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
