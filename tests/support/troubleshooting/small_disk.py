# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Folders of a process in its own mount namespace: a full disk, or other files below /etc."""

from __future__ import annotations

from pathlib import Path

from support.own_mounts import IN_OWN_MOUNTS

_FULL_DISK = """mount -t tmpfs -o size=8m,mode=0755 tmpfs "$0"
! dd if=/dev/zero of="$0/filler" bs=4k 2>/dev/null && exec "$@"
"""
_OVERLAY = """mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work
mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work overlay /etc
mkdir -p "$1" && mount --bind "$0" "$1" && shift && exec "$@"
"""


def command_on_full_disk(folder: Path) -> list[str]:
    """Return a command that runs another one, with a full disk at the folder."""
    return [*IN_OWN_MOUNTS, "sh", "-c", _FULL_DISK, str(folder)]


def free_disk(pid: int, folder: Path) -> None:
    """Remove the file that fills the disk at the folder of this process."""
    (Path(f"/proc/{pid}/root") / folder.relative_to("/") / "filler").unlink()


def command_with_folder(content: Path, folder: str) -> list[str]:
    """Return a command that runs another one, with the content of a folder at a path below /etc."""
    return [*IN_OWN_MOUNTS, "sh", "-e", "-c", _OVERLAY, str(content), folder]
