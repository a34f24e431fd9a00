# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The watchers of this process.

They are kept in this module, which is imported once: what Salt keeps for its own modules is gone after every refresh of
pillar, modules or beacons, and the threads would multiply. Used from the minion's own loop only, so there is no lock; and
keyed by process, since jobs are forks of the minion that inherit this module but not its threads.
"""

from __future__ import annotations

import os
import time
from typing import Any

from .settings import Settings
from .stored import ledger_of
from .telling import Told
from .watcher import Watcher

# seconds; some ten times as long as an answer takes
_PATIENCE = 0.05

_WATCHERS: dict[tuple[int, str], Watcher] = {}
_TOLD: dict[tuple[int, str, str], Told] = {}


def news(settings: Settings, path: str, listener: str) -> list[dict[str, Any]]:
    """What is to be told to the listener (a master) now. Starts the watcher where none runs.

    Waits for IMDS no longer than a healthy one takes to answer.
    """
    watcher = _running(settings, path)
    watcher.nudge(_PATIENCE)
    view = watcher.view
    told = _TOLD.setdefault((os.getpid(), path, listener), Told())
    due = told.due(view.history, view.entries, settings.selection, settings.repeat, time.monotonic(), view.doubtful)
    return [dict(notice, resource_name=view.resource_name, checked=view.checked) for notice in due]


def told_events(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a file's content, in the shape in which they are told."""
    try:
        ledger = ledger_of(data)
    except ValueError:
        return []
    return [entry.notice.as_dict() for entry in ledger.entries.values()]


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
