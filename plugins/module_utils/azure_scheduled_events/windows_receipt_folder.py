# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The folder of receipts on Windows, which its access control list protects."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

from .replacement import read_file, replace_file

_PROGRAM_DATA = r"C:\ProgramData"


def default_folder() -> str:
    """Return the folder for receipts below ProgramData."""
    program_data = os.environ.get("PROGRAMDATA", "")
    return os.path.join(
        program_data if os.path.isabs(program_data) else _PROGRAM_DATA, "azure-scheduled-events", "approvals"
    )


def create_folder(path: str) -> None:
    """Create the folder unless it exists."""
    # Python 3.12.4 and later (3.9.20, 3.10.15, 3.11.10) then permit access only to the owner, the
    # administrators and the system; others inherit the list of the parent folder
    os.makedirs(path, mode=0o700, exist_ok=True)


@contextlib.contextmanager
def open_folder(path: str) -> Iterator[ReceiptFolder]:
    """Open the folder; the methods of the opened folder raise OSError if it is missing."""
    yield ReceiptFolder(path)


class ReceiptFolder:
    """The files of a folder; all methods raise OSError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Return the names of the files."""
        return os.listdir(self._path)

    def read(self, name: str) -> str:
        """Return the text of a file; raise ValueError if it is not ASCII."""
        return read_file(os.path.join(self._path, name), encoding="ascii")

    def write(self, name: str, text: str) -> None:
        """Write a file as a whole or not at all."""
        draft = os.path.join(self._path, ".draft-" + os.urandom(8).hex())
        try:
            with open(draft, "x", encoding="ascii") as file:
                file.write(text)
            replace_file(draft, os.path.join(self._path, name))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(os.path.join(self._path, name))
