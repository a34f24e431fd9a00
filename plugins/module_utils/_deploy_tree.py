# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Program that makes files and folders equal to others: content, mode and owner.

    python3 -c TEXT [--check] SOURCE DESTINATION [SOURCE DESTINATION ...]

The roles of this collection pass the text of this file to the Python of the host. A task that
copies some seventy files one by one takes over a minute. A SOURCE of ``-`` is a JSON object on
standard input, with the texts of files by their relative paths.

The program prints each path that it changes or, with ``--check``, would change. It replaces each
file as a whole, so that a process that reads the old file can continue. It removes what a
DESTINATION has and its SOURCE does not have, except compiled Python while the files beside it stay
the same.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import stat
import sys
import tempfile
import typing as t
from pathlib import Path

_COMPILED = "__pycache__"


def deploy(source: Path, destination: Path, check: bool = False) -> list[Path]:
    """Make ``destination`` equal to ``source``, and return the paths below it that differed.

    The source is a file, a link or a folder. The destination may not exist yet, nor the folders above it. With
    ``check`` nothing changes.
    """
    if _is_folder(source):
        return _deploy_folder(source, destination, check)
    if _is_same_file(source, destination):
        return []
    if not check:
        _replace_file(source, destination)
    return [destination]


def unpack(texts: t.Mapping[str, str], folder: Path) -> None:
    """Write texts into a new folder, as files that all users can read; those that begin with ``#!`` are executable."""
    folder.mkdir()
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        if text.startswith("#!"):
            file.chmod(0o755)


def _deploy_folder(source: Path, destination: Path, check: bool) -> list[Path]:
    existing = sorted(os.listdir(destination)) if _is_folder(destination) else None
    differs = existing is None or _attributes(destination) != _attributes(source)
    if differs and not check:
        _make_folder(source, destination)
    differing = [
        path for name in sorted(os.listdir(source)) for path in deploy(source / name, destination / name, check)
    ]
    extra = [destination / name for name in existing or () if not os.path.lexists(source / name)]
    differing += [path for path in extra if path.name != _COMPILED]
    if not check:
        for path in extra:
            if path.name != _COMPILED or differing:
                _remove(path)
    return [destination] * differs + differing


def _make_folder(source: Path, destination: Path) -> None:
    if not _is_folder(destination):
        _remove(destination)
        destination.mkdir(parents=True)
    status = source.stat()
    os.chown(destination, status.st_uid, status.st_gid)
    destination.chmod(stat.S_IMODE(status.st_mode))


def _replace_file(source: Path, destination: Path) -> None:
    if _is_folder(destination):
        _remove(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    copy = destination.with_name("." + destination.name + ".new")
    shutil.copy(source, copy, follow_symlinks=False)
    status = source.lstat()
    os.chown(copy, status.st_uid, status.st_gid, follow_symlinks=False)
    os.replace(copy, destination)


def _is_same_file(source: Path, destination: Path) -> bool:
    if not os.path.lexists(destination) or _attributes(source) != _attributes(destination):
        return False
    if source.is_symlink():
        return os.readlink(source) == os.readlink(destination)
    return filecmp.cmp(source, destination, shallow=False)


def _attributes(path: Path) -> tuple[int, int, int]:
    status = path.lstat()
    return (status.st_mode, status.st_uid, status.st_gid)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _remove(path: Path) -> None:
    if _is_folder(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def main(arguments: t.Sequence[str]) -> None:
    """Deploy each pair of ``arguments``, and print the paths that differed."""
    os.umask(0o022)
    paths = [argument for argument in arguments if argument != "--check"]
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / "unpacked"
        if "-" in paths[::2]:
            unpack(json.load(sys.stdin), unpacked)
        for source, destination in zip(paths[::2], paths[1::2]):
            pair = (unpacked if source == "-" else Path(source), Path(destination))
            sys.stdout.writelines(f"{path}\n" for path in deploy(*pair, check="--check" in arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
