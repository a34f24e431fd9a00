# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A disk on which the journal cannot write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from hook_runner.journal import journal
from support.daemon.engine_harness import EngineHarness


class Disk:
    """Another program that holds the journal's write lock."""

    def __init__(self) -> None:
        self._holder = sqlite3.connect(":memory:")

    def fail(self, vm: EngineHarness) -> None:
        self._holder = sqlite3.connect(vm.settings.journal, isolation_level=None)
        self._holder.execute("BEGIN IMMEDIATE")

    def heal(self) -> None:
        self._holder.close()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A disk, and a journal with short time-outs."""
    for name, seconds in (("START_BUSY_TIMEOUT", 0.05), ("BUSY_TIMEOUT", 0.05), ("REOPEN_INTERVAL", 0.0)):
        monkeypatch.setattr(journal, name, seconds)
    made = Disk()
    yield made
    made.heal()
