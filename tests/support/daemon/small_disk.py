# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A disk on which the daemon cannot write its records."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from azure_scheduled_events import durable_file


class Disk:
    """The disk of this process. When it is full, it takes no new content; files can be renamed and removed."""

    def __init__(self, create: Callable[..., None]) -> None:
        self._create = create
        self._is_full = False

    def fail(self) -> None:
        self._is_full = True

    def heal(self) -> None:
        self._is_full = False

    def create(self, path: str, *arguments: Any) -> None:
        if self._is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._create(path, *arguments)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk that can become full."""
    made = Disk(durable_file.create)
    monkeypatch.setattr(durable_file, "create", made.create)
    return made


_PROGRAM = """
import errno, os
from azure_scheduled_events import durable_file
_create = durable_file.create
def _created(path, *arguments):
    if path.startswith(%(directory)r) and os.path.exists(%(flag)r):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    _create(path, *arguments)
durable_file.create = _created
"""


def program_on_full_disk(directory: str, flag: str) -> str:
    """Return Python code for `DaemonProcess.start`: nothing is written below the directory while the flag exists."""
    return _PROGRAM % {"directory": directory, "flag": flag}
