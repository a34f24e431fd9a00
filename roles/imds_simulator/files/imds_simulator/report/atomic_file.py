# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Writes a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path``; an existing file stays as it is until the new one is complete.

    Raises:
        OSError: the folder or the disk does not take the file.
    """
    # a symbolic link stays, and what it names is replaced
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # a pipe or a terminal, such as /dev/stdout
        target.write_text(text, encoding="utf-8")
        return
    temporary = _temporary_file(target)
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def check_writable(path: Path) -> None:
    """Check that ``write_whole`` can probably write ``path``, without a change of the file.

    Raises:
        OSError: its folder does not exist or takes no file, or it is a folder itself.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if target.is_file() or not target.exists():
        temporary = _temporary_file(target)
        temporary.touch(exist_ok=False)
        temporary.unlink()


def _temporary_file(target: Path) -> Path:
    return target.with_name(f".report-{secrets.token_hex(8)}.tmp")
