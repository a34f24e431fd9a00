# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Views of a harness for tests: marks of hooks, records, timelines, status and log."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from hook_runner import record_files
from hook_runner.clock import ServerClock
from hook_runner.lifecycle.engine import Engine
from hook_runner.record_store import RecordStore
from hook_runner.records import EventRecord, HookRun
from hook_runner.reporting import status
from hook_runner.reporting.imds_health import ImdsHealth
from support.daemon.hook_scripts import Mark, read_marks


class HarnessViews(ABC):
    """The read-only part of a harness."""

    marks_file: Path
    log: io.StringIO
    health: ImdsHealth
    store: RecordStore
    clock: ServerClock

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """The engine that the harness drives."""

    def running(self) -> list[HookRun]:
        """Return the runs that the engine considers as running."""
        return [step for record in self.engine.records for step in record.steps if step.state == "running"]

    def marks(self, *what: str) -> list[Mark]:
        return [mark for mark in read_marks(self.marks_file) if not what or mark.what in what]

    def ran(self, stage: str = "") -> list[str]:
        """Return the hooks that have begun, in that order."""
        return [mark.hook for mark in self.marks("begin") if mark.hook.startswith(stage)]

    def record(self, event_id: str) -> EventRecord:
        """Return the latest record of an event, open or closed."""
        for record in reversed(self.engine.records):
            if record.key == event_id.casefold():
                return record
        return next(record for record in self.stored() if record.key == event_id.casefold())

    def stored(self) -> list[EventRecord]:
        """Return the records on the disk, newest first."""
        found = record_files.stored(self.store.directory)
        assert found.unreadable == []
        return [record_files.from_data(data) for data in found.records]

    def steps(self, event_id: str) -> list[tuple[str, str]]:
        """Return (STAGE/NAME, state) of each run of an event."""
        return [(f"{step.stage}/{step.hook}", step.state) for step in self.record(event_id).steps]

    def timeline(self, event_id: str) -> list[str]:
        """Return the kinds of the entries in an event's timeline."""
        return [entry.what for entry in self.record(event_id).timeline]

    def status(self) -> dict[str, Any]:
        return status.to_dict(self.engine, self.health, self.clock, self.store)

    def times_logged(self, text: str) -> int:
        return sum(text in line for line in self.log.getvalue().splitlines())
