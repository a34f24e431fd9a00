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
    """The disk of this process.

    When it is full, it takes no new content, but files can be renamed and removed. When it is read-only, they cannot
    be renamed either.
    """

    def __init__(self, create: Callable[..., None], rename: Callable[..., None]) -> None:
        self._create, self._rename = create, rename
        self._error = 0

    def fail(self, error: int = errno.ENOSPC) -> None:
        self._error = error

    def heal(self) -> None:
        self._error = 0

    def create(self, path: str, *arguments: Any) -> None:
        if self._error:
            raise OSError(self._error, os.strerror(self._error), path)
        self._create(path, *arguments)

    def rename(self, source: str, target: str, **options: Any) -> None:
        if self._error == errno.EROFS:
            raise OSError(self._error, os.strerror(self._error), target)
        self._rename(source, target, **options)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk that can become full or read-only."""
    made = Disk(durable_file.create, os.replace)
    monkeypatch.setattr(durable_file, "create", made.create)
    monkeypatch.setattr(os, "replace", made.rename)
    return made
