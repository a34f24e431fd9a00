# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A physical copy of the collection at .../ansible_collections/azure_imds/scheduled_events.

ansible-test and Galaxy's importer need that path and do not accept a link. The copy is a git
repository of its own: otherwise both would use the project's repository, which ignores the folder of
the copy. An existing copy is updated: ansible-test keeps virtual environments in tests/output, and
making them again takes 20 seconds.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

INSIDE = Path("ansible_collections", "azure_imds", "scheduled_events")
KEPT = (Path("tests", "output"), Path(".git"))


def copy_tree(repository: Path, destination: Path, only: Sequence[str] = ()) -> Path:
    """Make or update the copy below `destination`, and return the folder of the collection in it.

    `destination` is a folder for ansible_collections. `only` are the files and folders in the root of the checkout
    that are copied; by default all.
    """
    collection = destination / INSIDE
    wanted = {name for name in tracked_or_new(repository) if not only or name.parts[0] in only}
    with only_one_at_a_time(destination):
        remove_others(collection, wanted)
        for name in wanted:
            update_file(repository / name, collection / name)
        if not (collection / ".git").exists():
            subprocess.run(["git", "init", "--quiet"], cwd=collection, check=True)
    return collection


@contextlib.contextmanager
def only_one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process changes this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tracked_or_new(repository: Path) -> set[Path]:
    """Return the files that git tracks or would add, without those that have been deleted."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    names = {Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name}
    return {name for name in names if os.path.lexists(repository / name)}


def remove_others(collection: Path, wanted: set[Path]) -> None:
    """Remove all files that are not wanted, and folders that are empty then."""
    for folder, folders, files in os.walk(collection, topdown=False):
        here = Path(folder).relative_to(collection)
        if any(kept in (here, *here.parents) for kept in KEPT):
            continue
        links = [name for name in folders if (collection / here / name).is_symlink()]
        for name in [*files, *links]:
            if here / name not in wanted:
                (collection / here / name).unlink()
        if here != Path() and not os.listdir(folder):
            os.rmdir(folder)


def update_file(source: Path, target: Path) -> None:
    """Copy a file or a link unless the target is equal."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        if not (target.is_symlink() and os.readlink(target) == os.readlink(source)):
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(source))
    elif target.is_symlink() or not target.exists() or not same_file(source, target):
        target.unlink(missing_ok=True)
        shutil.copy2(source, target)


def same_file(source: Path, target: Path) -> bool:
    """Return True if mode and content are equal."""
    return source.stat().st_mode == target.stat().st_mode and filecmp.cmp(source, target)
