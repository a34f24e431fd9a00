# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ways in which other programs damage the file of a journal."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from support.daemon.child_processes import in_child


def write(content: bytes, suffix: str = "") -> Callable[[str], None]:
    def work(path: str) -> None:
        Path(path + suffix).write_bytes(content)

    return by_another_process(work)


def by_another_process(work: Callable[[str], None]) -> Callable[[str], None]:
    """To close a file takes all locks of a process, and so SQLite's."""

    def run(path: str) -> None:
        assert in_child(lambda: work(path)) == 0

    return run


def overwrite(path: str) -> None:
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(size - 4096))


def remove_folder(path: str) -> None:
    shutil.rmtree(os.path.dirname(path))


def remove_all(path: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        os.unlink(path + suffix)


def replace_by(content: bytes) -> Callable[[str], None]:
    def work(path: str) -> None:
        Path(path + ".new").write_bytes(content)
        os.rename(path + ".new", path)

    return work


def replace_by_folder(path: str) -> None:
    os.unlink(path)
    os.mkdir(path)


DAMAGE: dict[str, Callable[[str], None]] = {
    "file removed": os.unlink,
    "all removed": remove_all,
    "folder removed": remove_folder,
    "log removed": lambda path: os.unlink(path + "-wal"),
    "shared memory removed": lambda path: os.unlink(path + "-shm"),
    "moved": lambda path: os.rename(path, path + ".taken"),
    "emptied": lambda path: os.truncate(path, 0),
    "cut to a page": lambda path: os.truncate(path, 4096),
    "cut in a page": lambda path: os.truncate(path, 10000),
    "log emptied": lambda path: os.truncate(path + "-wal", 0),
    "overwritten": by_another_process(overwrite),
    "text written": write(b"not a database\n" * 999),
    "log overwritten": write(bytes(300_000), "-wal"),
    "replaced by nothing": replace_by(b""),
    "replaced by text": replace_by(b"not a database\n" * 999),
    "replaced by a folder": replace_by_folder,
}
