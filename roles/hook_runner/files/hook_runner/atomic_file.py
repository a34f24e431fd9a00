# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Replaces a file in one step: a reader sees the old content or the new content."""

from __future__ import annotations

import contextlib
import os


def replace_file(path: str, content: bytes, mode: int) -> None:
    """Write a file, whole or not at all: an OSError leaves the old one unchanged.

    The folder may belong to another user, who may create links in it: no link is followed.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, mode)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
