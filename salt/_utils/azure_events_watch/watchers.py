# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The watchers of this process.

They are kept in this module, which is imported once: what Salt keeps for its own modules is gone
after every refresh of pillar, modules or beacons, and the threads would multiply. Used from the
minion's own loop only, so there is no lock; and keyed by process, since jobs are forks of the
minion that inherit this module but not its threads.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from typing import Any, Hashable, NamedTuple

from azure_scheduled_events.timestamps import as_utc_text

from .ledger_json import ledger_from_json
from .notifications import NotificationQueue
from .settings import Settings
from .watcher import Watcher

# seconds; some ten times as long as an answer takes
_POLL_TIMEOUT = 0.05


class _MasterQueue(NamedTuple):
    """A master: what it was sent, and the session in which it was."""

    queue: NotificationQueue
    session: Hashable


_WATCHERS: dict[tuple[int, str], Watcher] = {}
_QUEUES: dict[tuple[int, str, str], _MasterQueue] = {}


def pending_notifications(
    settings: Settings, path: str, listener: str, session: Hashable = None
) -> list[dict[str, Any]]:
    """What is to be sent to the listener (a master) now. Starts the watcher where none runs.

    session: another one than the last time means that the master may have lost what it was sent;
    None for none at present. Waits for IMDS no longer than a healthy one takes to answer.
    """
    watcher = _running_watcher(settings, path)
    watcher.poll_now(_POLL_TIMEOUT)
    snapshot, checked, now = watcher.snapshot, watcher.checked, time.monotonic()
    queue = _queue_for((os.getpid(), path, listener), session)
    if not queue.is_due(snapshot, now):
        return []
    more = {
        "resource_name": snapshot.resource_name,
        "checked": None if checked is None else as_utc_text(datetime.fromtimestamp(checked, timezone.utc)),
    }
    events, announced = queue.take_due(snapshot, settings.selection, settings.repeat, now, more)
    watcher.note_sent(announced)
    return events


def _queue_for(key: tuple[int, str, str], session: Hashable) -> NotificationQueue:
    known: _MasterQueue | None = _QUEUES.get(key)
    if known is not None and session in (None, known.session):
        return known.queue
    queue = NotificationQueue() if known is None else known.queue
    queue.repeat_all()
    _QUEUES[key] = _MasterQueue(queue, session)
    return queue


def events_of_file(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a file's content, in the shape in which they are queue."""
    try:
        ledger = ledger_from_json(data)
    except ValueError:
        return []
    return [entry.notice.as_dict() for entry in (*ledger.ended, *ledger.entries.values())]


def close(path: str) -> None:
    """Stop the watcher; what it knows and what was told stays known, for the case that it is started again."""
    watcher = _WATCHERS.get((os.getpid(), path))
    if watcher is not None:
        watcher.stop()


def _running_watcher(settings: Settings, path: str) -> Watcher:
    key = (os.getpid(), path)
    watcher = _WATCHERS.get(key)
    if watcher is not None:
        if watcher.settings == settings and watcher.resume():
            return watcher
        watcher.stop()
    started = Watcher(settings, path, watcher)
    started.start()
    _WATCHERS[key] = started
    return started
