# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The control groups of a lab, which do not end with its namespaces.

A lab has one group in each hierarchy, and its hosts have groups in these. The lab holds a lock on its
groups. Therefore the groups of a killed lab can be told from those of one that runs, and are removed
by the next lab, and by support.hosts.namespaces at its end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

# of hosts with one hierarchy, and with that of cgroup 1 beside it
TREES = tuple(map(Path, ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")))
PREFIX = "azure-imds_"
# A shell that joins the groups and executes a program, which is then in them before it has children.
JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit; shift; done; shift; exec "$@"'


@contextlib.contextmanager
def groups_of_a_lab() -> Iterator[list[Path]]:
    """Make a group in each hierarchy, and remove all at the end."""
    name = PREFIX + os.urandom(4).hex()
    with contextlib.ExitStack() as ends:
        groups = []
        for tree in _trees():
            with _locked(tree):
                group = tree / name
                group.mkdir()
                ends.callback(remove_group, group)
                ends.enter_context(_locked(group))
            groups.append(group)
        yield groups


def remove_stale_groups() -> None:
    """Remove the groups of labs that have ended without doing so."""
    for tree in _trees():
        with _locked(tree):
            for group in tree.glob(PREFIX + "*"):
                with contextlib.suppress(BlockingIOError, FileNotFoundError), _locked(group, fcntl.LOCK_NB):
                    remove_group(group)


def remove_group(group: Path) -> None:
    """Remove a control group and those in it, repeatedly until the kernel has removed the last process."""
    for _attempt in range(50):
        for folder, _folders, _files in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if not group.exists():
            return
        time.sleep(0.05)


def _trees() -> list[Path]:
    return [tree for tree in TREES if (tree / "cgroup.procs").exists()]


@contextlib.contextmanager
def _locked(folder: Path, more: int = 0) -> Iterator[None]:
    """Hold the lock of a folder, which the kernel takes from a process that ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | more)
        yield
    finally:
        os.close(descriptor)
