# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Who may change a file: what runs as root must come from where only root can write."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import Optional

_MOST_LINKS = 40  # as the kernel has it


def trusted_owners() -> frozenset[int]:
    """The users whose files are believed: root, and whoever runs this."""
    return frozenset({0, os.geteuid()})


def untrusted(path: str, inside: str, owners: frozenset[int]) -> Optional[str]:
    """Why others than `owners` might decide what `path` says, as one sentence; None where they cannot.

    With links resolved, `path` has to lie in the folder `inside` (or be it). Every file, folder and link on the way to it has
    to belong to one of `owners` and must not be writable by group or others. Access lists need no look of their own: what
    they allow at most stands in the group's bits. Folders outside `inside` may be sticky, as /tmp is: there nobody can
    move away what belongs to somebody else.
    """
    try:
        home = os.path.realpath(inside)
        target = "/"
        for target, info in _way(path):
            reason = _reason(target, info, owners, sticky_will_do=not _within(target, home))
            if reason is not None:
                return reason
    except (OSError, ValueError) as error:
        return "%s cannot be examined: %s" % (shown(path), getattr(error, "strerror", None) or error)
    if not _within(target, home):
        return "%s leads to %s, which is outside %s" % (shown(path), shown(target), shown(home))
    return None


def shown(path: str) -> str:
    """A path as it may stand in logs, whatever characters it has."""
    return path if path.isascii() and path.isprintable() else ascii(path)[1:-1]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _reason(path: str, info: os.stat_result, owners: frozenset[int], sticky_will_do: bool) -> Optional[str]:
    if info.st_uid not in owners:
        return "%s belongs to user %d" % (shown(path), info.st_uid)
    if stat.S_ISLNK(info.st_mode) or not info.st_mode & 0o022:
        return None
    if sticky_will_do and stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX:
        return None
    return "%s can be written by others than its owner (mode %04o)" % (shown(path), stat.S_IMODE(info.st_mode))


def _way(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """All that the kernel passes on its way to `path`: every folder, every link, and last what it arrives at."""
    here, links = "/", 0
    # not abspath(), which takes "link/.." for nothing
    ahead = os.path.join(os.getcwd(), path).split("/")[::-1]
    yield here, os.lstat(here)
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, part)
        info = os.lstat(there)
        yield there, info
        if not stat.S_ISLNK(info.st_mode):
            here = there
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        destination = os.readlink(there)
        here = "/" if destination.startswith("/") else here
        ahead.extend(destination.split("/")[::-1])
    yield here, os.lstat(here)
