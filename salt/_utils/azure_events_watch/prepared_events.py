# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The events in this minion's record of preparations, read again when the file has changed."""

from __future__ import annotations

import os

from azure_events_steps.record import RecordFile
from azure_scheduled_events.document import ScheduledEvent


class PreparedEvents:
    """Reads the record in the folder of a beacon's state file, which is at ``path``."""

    def __init__(self, path: str) -> None:
        self._file = RecordFile(os.path.dirname(os.path.dirname(path)))
        self._version: tuple[tuple[int, int, int] | None, ...] = ()
        self._events: tuple[ScheduledEvent, ...] = ()

    def events(self) -> tuple[ScheduledEvent, ...]:
        """Return the events in the record; the same object while the file is unchanged.

        A damaged record counts as empty. One that cannot be read now is read again at the next call.
        """
        version = self._file.version()
        if version != self._version:
            try:
                record = self._file.read()
            except OSError:
                return self._events
            except ValueError:
                record = None
            self._events = record.events if record is not None else ()
            self._version = version
        return self._events
