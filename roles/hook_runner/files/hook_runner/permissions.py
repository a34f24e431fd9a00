# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Checks that only trusted users can modify a file. Anything executed as root must pass."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping

_MAX_LINKS = 40  # as in the kernel
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def trusted_owners() -> frozenset[int]:
    """Return the trusted users: root, and the user of this process."""
    return frozenset({0, os.geteuid()})


def permission_problem(path: str, inside: str | None) -> str | None:
    """Return why users that are not trusted could change what `path` contains, or None.

    With links resolved, `path` must be in the folder `inside`, or be that folder; None permits any place. Every file,
    folder and link on the way to it must belong to a trusted one and must not be writable by
    group or others. The group's bits also show the most that access control lists allow. Folders
    outside `inside` may be sticky, as /tmp is: there users cannot move the files of other users.
    """
    try:
        home = None if inside is None else os.path.realpath(inside)
        target = "/"
        for target, info in _path_components(path):
            reason = _component_problem(target, info, allow_sticky=home is None or not _is_inside(target, home))
            if reason is not None:
                return reason
    except (OSError, ValueError) as error:
        return f"{printable_path(path)} cannot be examined: {getattr(error, 'strerror', None) or error}"
    if home is not None and not _is_inside(target, home):
        return f"{printable_path(path)} leads to {printable_path(target)}, which is outside {printable_path(home)}"
    return None


def location_problem(path: str) -> str | None:
    """Return why users that are not trusted could replace the folder `path`, or why it is not one; None if neither.

    It need not exist. Then the nearest existing folder above it is checked, with all on the way there. That one may be
    sticky: other users can neither move nor replace a folder that this process creates in it.
    """
    there = nearest_existing(path)
    reason = permission_problem(there, path if there == path else None)
    if reason is not None:
        return reason if there == path else f"{printable_path(path)} would be made there, and {reason}"
    return None if os.path.isdir(there) else f"{printable_path(there)} is not a folder"


def open_gates(gates: Mapping[str, str]) -> dict[str, bool]:
    """Return for each gate of the policy whether it is open: its file exists, and only trusted users can create it."""
    return {name: os.path.exists(path) and gate_problem(path) is None for name, path in gates.items()}


def gate_problem(path: str) -> str | None:
    """Return why users that are not trusted could open a gate, or None. The file need not exist."""
    there = nearest_existing(path)
    return permission_problem(there, os.path.dirname(there) if there == path else there)


def replacement_problem(folder: str) -> str | None:
    """Return why users that are not trusted could replace a folder, or None.

    The folder itself may belong to another user, such as node_exporter for the metrics.
    """
    if os.path.islink(folder):
        return permission_problem(folder, "/")
    reason = location_problem(os.path.dirname(folder))
    return None if reason is None else f"other users could replace the folder {printable_path(folder)}: {reason}"


def make_folder(path: str, mode: int) -> None:
    """Create a folder, and missing ones above it, at a path that only trusted users can change.

    Each folder is created in the open descriptor of the one above, without following links, and
    then examined. Raises OSError if other users could change it, or if it cannot be created.
    """
    reason = location_problem(path)
    if reason is not None:
        raise OSError(reason)
    there = nearest_existing(path)
    names = [name for name in path[len(there) :].split("/") if name]
    descriptor = os.open(os.path.realpath(there), _FOLDER)
    try:
        for number, name in enumerate(names, 1):
            try:
                os.mkdir(name, mode if number == len(names) else 0o755, dir_fd=descriptor)
            except FileExistsError:
                pass  # another process created it first; it is examined in the same way
            below = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
            made = "/".join([there.rstrip("/"), *names[:number]])
            reason = _component_problem(made, os.fstat(descriptor), allow_sticky=False)
            if reason is not None:
                raise OSError(reason)
    finally:
        os.close(descriptor)


def nearest_existing(path: str) -> str:
    """Return the path, or the nearest one above it that exists. A dangling link exists."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    return path


def printable_path(path: str) -> str:
    """Return a path for the log; unprintable characters are escaped."""
    return path if path.isascii() and path.isprintable() else ascii(path)[1:-1]


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _component_problem(path: str, info: os.stat_result, allow_sticky: bool) -> str | None:
    """Return why users that are not trusted could change this part of a path, or None.

    The mode of a link does not count, nor, with `allow_sticky`, that of a sticky folder.
    """
    if info.st_uid not in trusted_owners():
        return f"{printable_path(path)} belongs to user {info.st_uid}"
    if stat.S_ISLNK(info.st_mode) or not info.st_mode & 0o022:
        return None
    if allow_sticky and stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX:
        return None
    return f"{printable_path(path)} can be written by others than its owner (mode {stat.S_IMODE(info.st_mode):04o})"


def _path_components(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every folder and link that the kernel passes on its way to `path`, and its target last."""
    here, links = "/", 0
    # not abspath(), which removes "link/.."
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
