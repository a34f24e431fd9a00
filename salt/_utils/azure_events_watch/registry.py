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

from .settings import Settings
from .stored import ledger_of
from .telling import Told
from .watcher import Watcher

# seconds; some ten times as long as an answer takes
_PATIENCE = 0.05


class _Listener(NamedTuple):
    """A master: what it was sent, and the session in which it was."""

    told: Told
    session: Hashable


_WATCHERS: dict[tuple[int, str], Watcher] = {}
_LISTENERS: dict[tuple[int, str, str], _Listener] = {}


def news(settings: Settings, path: str, listener: str, session: Hashable = None) -> list[dict[str, Any]]:
    """What is to be sent to the listener (a master) now. Starts the watcher where none runs.

    session: another one than the last time means that the master may have lost what it was sent;
    None for none at present. Waits for IMDS no longer than a healthy one takes to answer.
    """
    watcher = _running(settings, path)
    watcher.nudge(_PATIENCE)
    view, checked, now = watcher.view, watcher.checked, time.monotonic()
    told = _told((os.getpid(), path, listener), session)
    if not told.is_due(view, now):
        return []
    more = {
        "resource_name": view.resource_name,
        "checked": None if checked is None else as_utc_text(datetime.fromtimestamp(checked, timezone.utc)),
    }
    events, lasts = told.due(view, settings.selection, settings.repeat, now, more)
    watcher.note_sent(lasts)
    return events


def _told(key: tuple[int, str, str], session: Hashable) -> Told:
    known: _Listener | None = _LISTENERS.get(key)
    if known is not None and session in (None, known.session):
        return known.told
    told = Told() if known is None else known.told
    told.repeat_all()
    _LISTENERS[key] = _Listener(told, session)
    return told


def told_events(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a file's content, in the shape in which they are told."""
    try:
        ledger = ledger_of(data)
    except ValueError:
        return []
    return [entry.notice.as_dict() for entry in (*ledger.ended, *ledger.entries.values())]


def close(path: str) -> None:
    """Stop the watcher; what it knows and what was told stays known, for the case that it is started again."""
    watcher = _WATCHERS.get((os.getpid(), path))
    if watcher is not None:
        watcher.stop()


def _running(settings: Settings, path: str) -> Watcher:
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
