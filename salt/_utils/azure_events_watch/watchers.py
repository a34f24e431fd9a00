# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The watchers of this process, and the notification queues of the masters.

They are module globals, because this module is imported once. Salt reloads its own modules at every
refresh of pillar, modules or beacons, and each reload would add a thread. Only the minion's main
loop uses them; therefore there is no lock. The keys contain the process ID: jobs are forks of the
minion, which inherit this module but not its threads.
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

# seconds; about ten times the time that a healthy IMDS takes to answer
_POLL_TIMEOUT = 0.05


class _MasterQueue(NamedTuple):
    """The queue of a master, and the session in which it was sent."""

    queue: NotificationQueue
    session: Hashable


_WATCHERS: dict[tuple[int, str], Watcher] = {}
_QUEUES: dict[tuple[int, str, str], _MasterQueue] = {}


def pending_notifications(
    settings: Settings, path: str, listener: str, session: Hashable = None
) -> list[dict[str, Any]]:
    """Return the data of the events to send to a master now; start the watcher if none runs.

    It waits for IMDS for at most _POLL_TIMEOUT seconds. ``path`` is that of the state file; ``listener``
    identifies the master. ``session`` is the session key of the master, or None if unknown. With a new
    key the master may have lost what it was sent, and all is sent again.
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
    """Return the events in a state file's content, in the shape in which they are sent."""
    try:
        ledger = ledger_from_json(data)
    except ValueError:
        return []
    return [entry.notice.as_dict() for entry in (*ledger.ended, *ledger.entries.values())]


def close(path: str) -> None:
    """Stop the watcher. Its state and the queues remain for a later start."""
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
    started = Watcher(settings, path, None if watcher is None else watcher.take_state())
    started.start()
    _WATCHERS[key] = started
    return started
