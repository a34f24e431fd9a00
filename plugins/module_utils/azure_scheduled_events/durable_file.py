# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Files that a kill, a full disk or a crash of the machine leaves whole: writing, reading and locking them.

This file imports nothing of the helper, because ready hooks and Salt's grain have it alone.

Windows refuses to replace a file while a reader has it open, and to open it in the moment of its replacement. Such
an action is repeated for up to a second. Windows has no modes and owners, and no function that syncs a folder.

A ``dir_fd`` is the descriptor of the folder to which a path is relative, for a folder in which other users may write.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable, TypeVar

if sys.platform != "win32":
    import fcntl

_DRAFT = ".durable-file-"
# seconds after which a draft is that of a process that was killed
_DRAFT_EXPIRES = 60.0
# seconds for another process to close a file
_IN_USE_TIMEOUT = 1.0
_IN_USE_PAUSE = 0.01
_LOCK_PAUSE = 0.05

_Result = TypeVar("_Result")


def write(
    path: str,
    content: bytes,
    mode: int = 0o600,
    owner: tuple[int, int] | None = None,
    dir_fd: int | None = None,
) -> None:
    """Replace a file as a whole; a link at its path is replaced, not followed.

    Args:
        path: the file, which may not exist.
        content: all of its content.
        mode: its permissions, with any umask.
        owner: the ids of its user and its group; by default those of this process.
        dir_fd: see above.

    Raises:
        OSError: the file is as before, unless only its folder could not be synced.
    """
    with replacing(path, dir_fd) as draft:
        create(draft, content, mode, owner, dir_fd)


def create(
    path: str,
    content: bytes,
    mode: int = 0o600,
    owner: tuple[int, int] | None = None,
    dir_fd: int | None = None,
) -> None:
    """Write a file that does not exist, with the arguments of `write`. Raises OSError; a part of it may remain."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=dir_fd), "wb") as file:
        file.write(content)
        file.flush()
        if sys.platform != "win32":
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: str, dir_fd: int | None = None) -> Iterator[str]:
    """Yield the path of a draft, which the block makes; then rename it, or remove it after an error."""
    folder = os.path.dirname(path)
    _remove_old_drafts(folder, dir_fd)
    draft = os.path.join(folder, _DRAFT + os.urandom(8).hex())
    try:
        yield draft
        retried(lambda: os.replace(draft, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd))
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=dir_fd)
        if isinstance(error, OSError):
            # the name of the draft differs each time
            raise OSError(error.errno, error.strerror, path) from None
        raise
    sync_folder(folder, dir_fd)


def _remove_old_drafts(folder: str, dir_fd: int | None) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir((folder or os.curdir) if dir_fd is None else dir_fd):
            draft = os.path.join(folder, name)
            if name.startswith(_DRAFT):
                made_at = os.stat(draft, dir_fd=dir_fd, follow_symlinks=False).st_mtime
                # the clock may have been set back
                if abs(time.time() - made_at) > _DRAFT_EXPIRES:
                    os.unlink(draft, dir_fd=dir_fd)


def remove(path: str, dir_fd: int | None = None) -> None:
    """Remove a file, if there is one; it does not return after a crash. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        retried(lambda: os.unlink(path, dir_fd=dir_fd))
        sync_folder(os.path.dirname(path), dir_fd)


def sync_folder(path: str, dir_fd: int | None = None) -> None:
    """Write the names in a folder to the disk; "" is that of ``dir_fd``, or the current one. Raises OSError."""
    if sys.platform != "win32":
        descriptor = os.open(path or os.curdir, os.O_RDONLY, dir_fd=dir_fd)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read(path: str, dir_fd: int | None = None) -> bytes:
    """Return the content of a file before or after another process replaced it. Raises OSError, also for a link."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)

    def read_once() -> bytes:
        with open(os.open(path, flags, dir_fd=dir_fd), "rb") as file:
            return file.read()

    return retried(read_once)


def read_json(path: str, dir_fd: int | None = None) -> Any:
    """Return the value in a JSON file.

    Raises:
        OSError: the file cannot be read; FileNotFoundError: there is none.
        ValueError: the file is damaged; `set_aside` keeps it.
    """
    try:
        return json.loads(read(path, dir_fd))
    except RecursionError as error:
        raise ValueError(str(error)) from None


def set_aside(path: str) -> str:
    """Rename a damaged file, and return its new path, at which it replaces an earlier one. Raises OSError."""
    aside = path + ".damaged"
    retried(lambda: os.replace(path, aside))
    return aside


def is_in_use(error: OSError) -> bool:
    """Return True if an action on a file has failed because another process uses the file; only on Windows."""
    # open() has the same number for a file in use and for one that the user may not read
    return sys.platform == "win32" and error.errno == errno.EACCES


def retried(
    action: Callable[[], _Result],
    repeats: Callable[[OSError], bool] = is_in_use,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> _Result:
    """Return the result of an action, repeated for up to a second while ``repeats`` finds that its file is in use.

    The action takes effect as a whole, or raises OSError without an effect.

    Raises:
        OSError: the error of the last attempt.
    """
    ends = clock() + _IN_USE_TIMEOUT
    while True:
        try:
            return action()
        except OSError as error:
            if not repeats(error) or clock() >= ends:
                raise
        sleep(_IN_USE_PAUSE)


def lock(
    descriptor: int,
    timeout: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Lock an open file, on POSIX also a folder, until it is closed or this process ends. Raises OSError.

    Returns:
        False if another process holds the lock for ``timeout`` seconds by ``clock``.
    """
    ends = clock() + timeout
    while not _try_lock(descriptor):
        if clock() >= ends:
            return False
        sleep(_LOCK_PAUSE)
    return True


if sys.platform == "win32":

    def _try_lock(descriptor: int) -> bool:
        # imported here, because Salt's grain imports this file in every process
        import ctypes
        import msvcrt
        from ctypes import wintypes

        # msvcrt.locking has no errno for a lock of another descriptor under Wine
        lock_file = ctypes.WinDLL("kernel32", use_last_error=True).LockFile
        lock_file.argtypes = (wintypes.HANDLE, wintypes.DWORD, wintypes.DWORD, wintypes.DWORD, wintypes.DWORD)
        # Windows denies access to a locked byte; this one is far behind the content of any file with a lock
        if lock_file(msvcrt.get_osfhandle(descriptor), 1 << 30, 0, 1, 0):
            return True
        code = ctypes.get_last_error()
        if code != 33:  # ERROR_LOCK_VIOLATION
            raise ctypes.WinError(code)
        return False

else:

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
