# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A file as a value: read from a path, kept in a record, and put at a path atomically."""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from typing import Any, NamedTuple

from ready_hooks.core.errors import HookError

_MOST_BYTES = 1024 * 1024


class SavedFile(NamedTuple):
    """A regular file or a symbolic link.

    Attributes:
        content: the content, or the target of the link, in base64.
        is_link: whether it is a symbolic link; then the mode does not count.
        mode: permissions.
        uid, gid: owner and group.
    """

    content: str
    is_link: bool = False
    mode: int = 0o644
    uid: int = 0
    gid: int = 0

    def is_like(self, other: SavedFile | None) -> bool:
        """Return True if the other one is of the same kind and content."""
        return other is not None and self[:2] == other[:2]


def encoded(text: str) -> str:
    """Return the text as the content of a SavedFile."""
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")


def from_record(data: Any) -> SavedFile | None:
    """Return what a record has; a NamedTuple is a list there."""
    return None if data is None else SavedFile(*data)


def read(path: str) -> SavedFile | None:
    """Return the file at this path, or None. Raises HookError if it is neither a small file nor a link."""
    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            content = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(info.st_mode):
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                content = file.read(_MOST_BYTES + 1)
        else:
            raise HookError(path, "it is neither a file nor a symbolic link", "correct path")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HookError(path, f"it cannot be read: {error.strerror}") from None
    if len(content) > _MOST_BYTES:
        raise HookError(path, f"it is larger than {_MOST_BYTES} bytes", "use a small file for the probe")
    is_link, mode = stat.S_ISLNK(info.st_mode), stat.S_IMODE(info.st_mode)
    return SavedFile(base64.b64encode(content).decode("ascii"), is_link, mode, info.st_uid, info.st_gid)


def put(path: str, file: SavedFile | None) -> None:
    """Make the path the file; None removes it. A reader sees the old file or the new one. Raises HookError."""
    folder, name = os.path.split(path)
    new = os.path.join(folder, f".{name}.new")
    try:
        if file is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)  # of a run that was killed
            _make(new, file)
            os.replace(new, path)
        _sync(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise HookError(path, f"it cannot be changed: {error.strerror}") from None


def _make(new: str, file: SavedFile) -> None:
    content = base64.b64decode(file.content)
    if file.is_link:
        os.symlink(content, os.fsencode(new))
        os.chown(new, file.uid, file.gid, follow_symlinks=False)
        return
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fchown(descriptor, file.uid, file.gid)
        os.fchmod(descriptor, file.mode)
        os.fsync(descriptor)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
