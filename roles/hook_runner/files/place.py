# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Make files and folders of the host equal to others that were laid out and checked beside them.

    place.py SOURCE DESTINATION [SOURCE DESTINATION ...]

Each file is replaced as a whole, so that whoever runs or reads the old one goes on with that. What
a folder has and its source has not is removed, but for what Python compiled as long as its source
stays the same. Prints each path that it changed.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Iterator

COMPILED = "__pycache__"


def place(source: Path, destination: Path) -> Iterator[Path]:
    """Make ``destination`` what ``source`` is; the paths that differed."""
    if source.is_dir() and not source.is_symlink():
        yield from place_folder(source, destination)
    elif not same(source, destination):
        remove(destination, unless_file=True)
        destination.parent.mkdir(parents=True, exist_ok=True)
        fresh = destination.with_name("." + destination.name + ".new")
        shutil.copy2(source, fresh, follow_symlinks=False)
        own = source.lstat()
        os.chown(fresh, own.st_uid, own.st_gid, follow_symlinks=False)
        os.replace(fresh, destination)
        yield destination


def place_folder(source: Path, destination: Path) -> Iterator[Path]:
    own = source.stat()
    if not destination.is_dir() or destination.is_symlink():
        remove(destination)
        destination.mkdir(parents=True)
        yield destination
    if rights(destination.stat()) != rights(own):
        os.chown(destination, own.st_uid, own.st_gid)
        destination.chmod(stat.S_IMODE(own.st_mode))
        yield destination
    differing = [path for name in sorted(os.listdir(source)) for path in place(source / name, destination / name)]
    stale = [destination / name for name in sorted(os.listdir(destination)) if not os.path.lexists(source / name)]
    for path in stale:
        if path.name != COMPILED or differing:
            remove(path)
    yield from differing + [path for path in stale if path.name != COMPILED]


def same(source: Path, destination: Path) -> bool:
    """Whether two files have the same content, mode and owner."""
    if not os.path.lexists(destination) or rights(source.lstat()) != rights(destination.lstat()):
        return False
    if source.is_symlink():
        return os.readlink(source) == os.readlink(destination)
    return filecmp.cmp(source, destination, shallow=False)


def rights(status: os.stat_result) -> tuple[int, int, int]:
    return (status.st_mode, status.st_uid, status.st_gid)


def remove(path: Path, unless_file: bool = False) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path) and not unless_file:
        path.unlink()


if __name__ == "__main__":
    os.umask(0o022)
    words = [Path(word) for word in sys.argv[1:]]
    for pair in zip(words[::2], words[1::2]):
        for changed in place(*pair):
            print(changed)
