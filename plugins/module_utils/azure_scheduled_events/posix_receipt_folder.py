# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The folder of receipts on Linux: used only if no other user can write to it."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Iterator

# of root; a reboot clears it, and approving again afterwards has no effect
DEFAULT_FOLDER = "/run/azure-scheduled-events/approvals"
# of other users; /run/user is cleared at the end of the user's last session, before the next run of
# a playbook
USER_FOLDER = "~/.local/state/azure-scheduled-events/approvals"

_WRITABLE_BY_OTHERS = 0o022


def default_folder() -> str:
    """Return the folder for receipts of the current user; that of root if the user has no home directory."""
    own = os.path.expanduser(USER_FOLDER)
    return own if os.geteuid() != 0 and os.path.isabs(own) else DEFAULT_FOLDER


def create_folder(path: str) -> None:
    """Create the folder unless it exists."""
    os.makedirs(path, mode=0o755, exist_ok=True)


@contextlib.contextmanager
def open_folder(path: str) -> Iterator[ReceiptFolder]:
    """Open the folder; raise OSError if it is missing or another user can write to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = os.fstat(descriptor)
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & _WRITABLE_BY_OTHERS:
            raise PermissionError(errno.EPERM, "another user can write to the folder", path)
        yield ReceiptFolder(descriptor)
    finally:
        os.close(descriptor)


class ReceiptFolder:
    """The files of an open folder; all methods raise OSError."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def names(self) -> list[str]:
        """Return the names of the files."""
        return os.listdir(self._descriptor)

    def read(self, name: str) -> str:
        """Return the text of a file; raise ValueError if it is not ASCII."""
        with open(os.open(name, os.O_RDONLY, dir_fd=self._descriptor), encoding="ascii") as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        """Write a file as a whole or not at all."""
        draft = ".draft-" + os.urandom(8).hex()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            with open(os.open(draft, flags, 0o644, dir_fd=self._descriptor), "w", encoding="ascii") as file:
                file.write(text)
            os.replace(draft, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                self.remove(draft)
            raise

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=self._descriptor)
