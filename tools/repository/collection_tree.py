# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A physical copy of the collection at .../ansible_collections/azure_imds/scheduled_events.

ansible-test and Galaxy's importer want that path and accept no link in its place. The copy is a git
repository of its own: they would otherwise go up to the project's, which ignores the folder that
the copy lies in. It is brought up to date rather than made anew: what ansible-test keeps in
tests/output (virtual environments among it) is worth 20 seconds a run.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

INSIDE = Path("ansible_collections", "azure_imds", "scheduled_events")
KEPT = (Path("tests", "output"), Path(".git"))


def copy_tree(repository: Path, destination: Path) -> Path:
    """Make or refresh the copy below `destination`; returns the collection's folder in it."""
    collection = destination / INSIDE
    wanted = tracked_or_new(repository)
    with only_one_at_a_time(destination):
        remove_others(collection, wanted)
        for name in wanted:
            bring(repository / name, collection / name)
        if not (collection / ".git").exists():
            subprocess.run(["git", "init", "--quiet"], cwd=collection, check=True)
    return collection


@contextlib.contextmanager
def only_one_at_a_time(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tracked_or_new(repository: Path) -> set[Path]:
    """The files git knows or would add, less those that are deleted but not yet committed as such."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    names = {Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name}
    return {name for name in names if os.path.lexists(repository / name)}


def remove_others(collection: Path, wanted: set[Path]) -> None:
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


def bring(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        if not (target.is_symlink() and os.readlink(target) == os.readlink(source)):
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(source))
    elif target.is_symlink() or not target.exists() or not same_file(source, target):
        target.unlink(missing_ok=True)
        shutil.copy2(source, target)


def same_file(source: Path, target: Path) -> bool:
    return source.stat().st_mode == target.stat().st_mode and filecmp.cmp(source, target)
