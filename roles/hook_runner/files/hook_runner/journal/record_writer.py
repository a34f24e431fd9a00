# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Writes records into one open file, and of each record only the part that this file lacks."""

from __future__ import annotations

import sqlite3
from typing import Sequence

from hook_runner.journal import database, rows
from hook_runner.records import EventRecord

_StepRows = dict[int, tuple[rows.Value, ...]]


class RecordWriter:
    """Knows which parts of the open records one file has, which is open for writing."""

    def __init__(self, connection: sqlite3.Connection, commit: database.Commit) -> None:
        self._connection = connection
        self._commit = commit
        self._entries_written: dict[int, int] = {}
        self._steps_written: _StepRows = {}

    def write(self, records: Sequence[EventRecord]) -> None:
        """Write these records in the transaction that the caller has begun, and end it."""
        written = [(record, self._put(record)) for record in records]
        self._commit(self._connection)
        for record, steps in written:
            if record.closed_at is None:
                self._entries_written[record.id] = len(record.timeline)
                self._steps_written.update(steps)
            else:
                self._entries_written.pop(record.id, None)
                for step_id in steps:
                    self._steps_written.pop(step_id, None)

    def _put(self, record: EventRecord) -> _StepRows:
        """Write the missing parts of a record; returns the rows of its runs."""
        rows.save_record(self._connection, record)
        steps = {step.id: rows.step_row(record, step) for step in record.steps}
        for step_id, row in steps.items():
            if self._steps_written.get(step_id) != row:
                rows.save_step(self._connection, row)
        rows.save_entries(self._connection, record, self._entries_written.get(record.id, 0))
        return steps
