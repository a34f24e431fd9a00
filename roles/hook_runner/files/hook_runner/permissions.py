# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Who may change a file: what runs as root must come from where only root can write."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

_MAX_LINKS = 40  # as the kernel has it
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(OSError):
    """A place in which others could interfere; the text is one sentence."""


def trusted_owners() -> frozenset[int]:
    """The users whose files are believed: root, and whoever runs this."""
    return frozenset({0, os.geteuid()})


def permission_problem(path: str, inside: str, owners: frozenset[int]) -> str | None:
    """Why others than `owners` might decide what `path` says, as one sentence; None where they cannot.

    With links resolved, `path` has to lie in the folder `inside` (or be it). Every file, folder and
    link on the way to it has to belong to one of `owners` and must not be writable by group or
    others. Access lists need no look of their own: what they allow at most stands in the group's
    bits. Folders outside `inside` may be sticky, as /tmp is: there nobody can move away what
    belongs to somebody else.
    """
    try:
        home = os.path.realpath(inside)
        target = "/"
        for target, info in _path_components(path):
            reason = _component_problem(target, info, owners, sticky_will_do=not _is_inside(target, home))
            if reason is not None:
                return reason
    except (OSError, ValueError) as error:
        return f"{printable_path(path)} cannot be examined: {getattr(error, 'strerror', None) or error}"
    if not _is_inside(target, home):
        return f"{printable_path(path)} leads to {printable_path(target)}, which is outside {printable_path(home)}"
    return None


def location_problem(path: str, owners: frozenset[int]) -> str | None:
    """Why others than `owners` might decide what the folder `path` is, also if it is not there yet; None if they cannot.

    A folder that exists is judged as by `permission_problem`. For one that does not, the nearest folder
    above it that exists counts, with all on the way there. That one may be sticky: what this
    process makes there, others can neither move nor replace.
    """
    there = nearest_existing(path)
    if there == path:
        return permission_problem(path, path, owners)
    try:
        for target, info in _path_components(there):
            reason = _component_problem(target, info, owners, sticky_will_do=True)
            if reason is not None:
                return f"{printable_path(path)} would be made there, and {reason}"
    except (OSError, ValueError) as error:
        return f"{printable_path(there)} cannot be examined: {getattr(error, 'strerror', None) or error}"
    return None if stat.S_ISDIR(info.st_mode) else f"{printable_path(there)} is not a folder"


def make_folder(path: str, mode: int, owners: frozenset[int]) -> None:
    """Make a folder, and those above it that are missing, so that nobody but `owners` can decide where it lies.

    Each folder is made in the one that is held open, without following links, and examined when it
    is there. Raises Untrusted, and OSError where it cannot be made.
    """
    reason = location_problem(path, owners)
    if reason is not None:
        raise Untrusted(reason)
    there = nearest_existing(path)
    names = [name for name in path[len(there) :].split("/") if name]
    descriptor = os.open(os.path.realpath(there), _FOLDER)
    try:
        for number, name in enumerate(names, 1):
            try:
                os.mkdir(name, mode if number == len(names) else 0o755, dir_fd=descriptor)
            except FileExistsError:
                pass  # made in this moment by another process; it is examined as ours is
            below = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
            reason = _component_problem(
                "/".join([there.rstrip("/"), *names[:number]]), os.fstat(descriptor), owners, sticky_will_do=False
            )
            if reason is not None:
                raise Untrusted(reason)
    finally:
        os.close(descriptor)


def nearest_existing(path: str) -> str:
    """The path, or the nearest one above it that exists. A link that leads nowhere exists."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    return path


def printable_path(path: str) -> str:
    """A path as it may stand in logs, whatever characters it has."""
    return path if path.isascii() and path.isprintable() else ascii(path)[1:-1]


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _component_problem(path: str, info: os.stat_result, owners: frozenset[int], sticky_will_do: bool) -> str | None:
    if info.st_uid not in owners:
        return f"{printable_path(path)} belongs to user {info.st_uid}"
    if stat.S_ISLNK(info.st_mode) or not info.st_mode & 0o022:
        return None
    if sticky_will_do and stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX:
        return None
    return f"{printable_path(path)} can be written by others than its owner (mode {stat.S_IMODE(info.st_mode):04o})"


def _path_components(path: str) -> Iterator[tuple[str, os.stat_result]]:
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
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        destination = os.readlink(there)
        here = "/" if destination.startswith("/") else here
        ahead.extend(destination.split("/")[::-1])
    yield here, os.lstat(here)
