# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Protects a hook, which is root, from the other users who own files and folders that it works with."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from ready_hooks.core.errors import HookError

_WRITABLE_BY_OTHERS = 0o022
_MOST_LINKS = 40  # as in the kernel
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY_USER = -1

Place = tuple[str, os.stat_result]


def change_problem(path: str) -> str | None:
    """Return why users other than root and this one could change what the path leads to, or None.

    All folders and links on the way belong to root or this user, and only their owners can write
    them. A folder such as /tmp, in which users cannot replace the files of others, may be on the
    way to the folder of the file. Raises OSError if there is no such file.
    """
    passed = list(_passed(path))
    folders = [place for place, info in passed if stat.S_ISDIR(info.st_mode)]
    for place, info in passed:
        if not _is_own(info):
            return f"{place} belongs to user {info.st_uid}"
        if _is_writable(info) and not (info.st_mode & stat.S_ISVTX and place in folders[:-1]):
            return f"users other than its owner can write {place} (mode {stat.S_IMODE(info.st_mode):04o})"
    return None


def refuse_changeable(path: str, what: str) -> None:
    """Raise HookError if another user could change the file or folder, which is `what`; OSError if there is none."""
    problem = change_problem(path)
    if problem is not None:
        remedy = "make root the owner and the only user who can write it"
        raise HookError(path, f"other users can change {what}: {problem}", remedy)


@contextlib.contextmanager
def opened_folder(path: str) -> Iterator[int]:
    """The descriptor of a folder in which other users may have files, for the block.

    A link that another user can change has to lead to a folder of this user, who could make each
    change in it without this hook. What the block does below the descriptor must not follow links.

    Raises:
        HookError: such a link leads elsewhere.
        OSError: the folder cannot be opened.
    """
    users: set[int] = set()
    links = 0
    ahead = path.split("/")[::-1]
    folder = os.open("/", _WAY)
    try:
        while ahead:
            part = ahead.pop()
            if part in ("", "."):
                continue
            info = os.stat(part, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode):
                links += 1
                target = _target(part, folder, links)
                users |= _users_of_link(os.fstat(folder), info)
                ahead += target.split("/")[::-1]
                part = "/" if target.startswith("/") else "."
            # another user can have replaced the folder by a link in the meantime
            below = os.open(part, _WAY, dir_fd=folder)
            os.close(folder)
            folder = below
        if users - {os.fstat(folder).st_uid}:
            problem = "users who do not own this folder can change a link that leads to it"
            raise HookError(path, problem, "use a path without this link, or correct the owner of the folders")
        found = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        yield found
    finally:
        os.close(found)


def _users_of_link(folder: os.stat_result, link: os.stat_result) -> set[int]:
    """Return the other users who can change a link in a folder; _ANY_USER for those of a group."""
    users = {info.st_uid for info in (folder, link) if not _is_own(info)}
    is_shared = _is_writable(folder) and not folder.st_mode & stat.S_ISVTX
    return users or ({_ANY_USER} if is_shared else set())


def _passed(path: str) -> Iterator[Place]:
    """Yield the folders and links that the kernel passes on its way to the path, and what is there."""
    here, links = "", 0
    ahead = path.split("/")[::-1]
    yield "/", os.lstat("/")
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        place = f"{here}/{part}"
        info = os.lstat(place)
        yield place, info
        if not stat.S_ISLNK(info.st_mode):
            here = place
            continue
        links += 1
        target = _target(place, None, links)
        here = "" if target.startswith("/") else here
        ahead += target.split("/")[::-1]


def _target(link: str, folder: int | None, links: int) -> str:
    """Return where a link leads. Raises OSError after too many links."""
    if links > _MOST_LINKS:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), link)
    return os.readlink(link, dir_fd=folder)


def _is_own(info: os.stat_result) -> bool:
    return info.st_uid in (0, os.geteuid())


def _is_writable(info: os.stat_result) -> bool:
    return not stat.S_ISLNK(info.st_mode) and bool(info.st_mode & _WRITABLE_BY_OTHERS)
