# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A file as a value: read from a path, kept in a record, and put at a path atomically."""

from __future__ import annotations

import base64
import os
import stat
from typing import Any, NamedTuple

from ready_hooks.core import durable_file
from ready_hooks.core.errors import HookError
from ready_hooks.core.ownership import opened_folder

_MOST_BYTES = 1024 * 1024
# without the bits that let a program run as its owner
_MODE = 0o777


class SavedFile(NamedTuple):
    """A regular file, or a symbolic link; the mode of a link does not count.

    `content` is the content, or the target of the link, in base64.
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
    folder, name = os.path.split(path)
    try:
        with opened_folder(folder) as descriptor:
            info, content = _read(descriptor, name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HookError(path, f"it cannot be read: {error.strerror}") from None
    is_link = stat.S_ISLNK(info.st_mode)
    if not is_link and not stat.S_ISREG(info.st_mode):
        raise HookError(path, "it is neither a file nor a symbolic link", "correct path")
    if len(content) > _MOST_BYTES:
        raise HookError(path, f"it is larger than {_MOST_BYTES} bytes", "use a small file for the probe")
    return SavedFile(base64.b64encode(content).decode("ascii"), is_link, info.st_mode & _MODE, info.st_uid, info.st_gid)


def _read(folder: int, name: str) -> tuple[os.stat_result, bytes]:
    """Return what is known of one file, and its content; b"" for what is neither a file nor a link."""
    info = os.lstat(name, dir_fd=folder)
    if stat.S_ISLNK(info.st_mode):
        return info, os.fsencode(os.readlink(name, dir_fd=folder))
    # O_NONBLOCK: to open a named pipe would wait for its writer
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        # another user may have replaced the file: owner and content must be those of one file
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return info, b""
        with open(descriptor, "rb", closefd=False) as file:
            return info, file.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def put(path: str, file: SavedFile | None) -> None:
    """Make the path the file; None removes it. A reader sees the old file or the new one. Raises HookError."""
    folder, name = os.path.split(path)
    try:
        with opened_folder(folder) as descriptor:
            if file is None:
                durable_file.remove(name, descriptor)
            elif file.is_link:
                with durable_file.replacing(name, descriptor) as draft:
                    _make_link(descriptor, draft, file)
            else:
                content = base64.b64decode(file.content)
                durable_file.write(name, content, file.mode & _MODE, (file.uid, file.gid), descriptor)
    except OSError as error:
        raise HookError(path, f"it cannot be changed: {error.strerror}") from None


def _make_link(folder: int, new: str, file: SavedFile) -> None:
    """Make a link, and give it to the owner of the saved one."""
    os.symlink(base64.b64decode(file.content), os.fsencode(new), dir_fd=folder)
    descriptor = os.open(new, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        # the owner of the folder may have put a file of root in its place
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            # this path leads to the link itself, whatever has its name now
            os.chown(f"/proc/self/fd/{descriptor}", file.uid, file.gid)
    finally:
        os.close(descriptor)
