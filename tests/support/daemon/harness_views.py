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
from hook_runner.maintenance.record import EventRecord, HookRun, Maintenance
from hook_runner.record_store import RecordStore
from hook_runner.reporting import status
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.runner import Runner
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
    def runner(self) -> Runner:
        """The runner that the harness drives."""

    def running(self) -> list[HookRun]:
        """Return the run that has not ended."""
        maintenance = self.runner.records.maintenance
        return [maintenance.open_run] if maintenance is not None and maintenance.open_run is not None else []

    def marks(self, *what: str) -> list[Mark]:
        return [mark for mark in read_marks(self.marks_file) if not what or mark.what in what]

    def ran(self, stage: str = "") -> list[str]:
        """Return the hooks that have begun, in that order."""
        return [mark.hook for mark in self.marks("begin") if mark.hook.startswith(stage)]

    def maintenance(self, event_id: str = "") -> Maintenance:
        """Return the latest maintenance, or the latest one with an event, open or closed."""
        opened, stored = self.runner.records.maintenance, self.stored()
        if opened is not None:
            stored = [opened, *(each for each in stored if each.number != opened.number)]
        keys = [{record.key for record in each.events} for each in stored]
        return next(each for each, of in zip(stored, keys) if not event_id or event_id.casefold() in of)

    def record(self, event_id: str) -> EventRecord:
        """Return the latest record of an event, with or without a maintenance, open or closed."""
        found = self.runner.records.find(event_id.casefold())
        if found is not None:
            return found
        past = [*self.runner.records.state.past, *(record for each in self.stored()[::-1] for record in each.events)]
        return next(record for record in reversed(past) if record.key == event_id.casefold())

    def stored(self) -> list[Maintenance]:
        """Return the maintenances on the disk, newest first."""
        found = record_files.stored(self.store.directory)
        assert found.unreadable == []
        return found.maintenances

    def steps(self, event_id: str) -> list[tuple[str, str]]:
        """Return (STAGE/NAME, state) of each run of the maintenance of an event."""
        return [(run.title, run.state) for run in self.maintenance(event_id).runs]

    def timeline(self, event_id: str) -> list[str]:
        """Return the kinds of the entries in the timeline of the maintenance of an event."""
        return [entry.what for entry in self.maintenance(event_id).timeline]

    def status(self) -> dict[str, Any]:
        return status.to_data(self.runner, self.health)

    def times_logged(self, text: str) -> int:
        return sum(text in line for line in self.log.getvalue().splitlines())
