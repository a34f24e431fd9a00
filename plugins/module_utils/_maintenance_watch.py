# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides on the host for which events it is prepared, and when it may recover."""

from __future__ import annotations

import os
import typing as t
from datetime import datetime, timezone

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.changes import (
    ABSENCES_NEEDED,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    EventDocument,
    ScheduledEvent,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.selection import (
    ANY,
    Selection,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.timestamps import (
    parse_time,
)

# environment variable of the caller's tasks: the id of the run, and the step
RUN_VARIABLE = "AZURE_MAINTENANCE_RUN"
PREPARE = "prepare"
RECOVER = "recover"

_UNSEEN: dict[str, t.Any] = {"listed": False, "started": None, "over": None, "ended_early": False}


def is_due(event: ScheduledEvent, document: EventDocument, within: float) -> bool:
    """Return True if the event has started, or may start within ``within`` seconds by the server's clock."""
    now = document.server_time or datetime.now(timezone.utc)
    return event.seconds_left(now) <= within


def processes_of(runs: t.Collection[str], step: str, younger_than: float = 0, proc: str = "/proc") -> list[str]:
    """Return the running processes that tasks of a step started, as far as this user can see them.

    A command continues when the connection to the host is lost, or the controller is killed. Each process is its id
    and the beginning of its command line.

    Args:
        runs: ids of the runs.
        step: PREPARE or RECOVER.
        younger_than: maximum seconds since the start of the process, 0 for no limit. A service that
            a task has started may never end.
        proc: the proc file system; without it no process is found.
    """
    marks = [f"{RUN_VARIABLE}={run}/{step}" for run in runs]
    found = []
    for pid in sorted(filter(str.isdigit, _listed(proc)), key=int) if marks else ():
        try:
            environment = _read(proc, pid, "environ").split("\0")
            if any(mark in environment for mark in marks) and not 0 < younger_than <= _age(proc, pid):
                found.append("{} ({})".format(pid, _read(proc, pid, "cmdline").replace("\0", " ")[:60].strip()))
        except OSError:
            pass  # the process has ended, or belongs to another user
    return found


def _age(proc: str, pid: str) -> float:
    """Return the seconds since the process started."""
    # the second field is a name in parentheses, which may contain any character
    started = int(_read(proc, pid, "stat").rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return float(_read(proc, "uptime").split()[0]) - started


def _read(*path: str) -> str:
    with open(os.path.join(*path), "rb") as file:
        return file.read().decode("utf-8", "replace")


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _ends_early(held: t.Mapping[str, t.Any], document: EventDocument) -> bool:
    """Return True if the event is gone without having started, before its NotBefore by the server's clock."""
    not_before = parse_time(held["last_not_before"] or "")
    if held["started"] or held.get("status") == "Started" or not_before is None or document.server_time is None:
        return False
    return document.server_time < not_before


class MaintenanceWatch:
    """Watches the events for which a host is prepared until they are over.

    Args:
        selection: the events of the VM that maintenance handles.
        within: seconds; an event that is announced during the wait and may start within this time
            is added.
        events: the events of the note.
        own_name: returns the name of the VM, or None while it is unknown.
        processes: returns the running processes of prepare tasks. The events are not over before
            these have ended.
        hold: called with the added events, to write them into the note.
    """

    def __init__(
        self,
        selection: Selection,
        within: float,
        events: t.Iterable[t.Mapping[str, t.Any]],
        own_name: t.Callable[[], str | None],
        processes: t.Callable[[], list[str]],
        hold: t.Callable[[list[dict[str, t.Any]]], None],
    ) -> None:
        self._selection = selection
        self._within = within
        self._own_name = own_name
        self._processes = processes
        self._hold = hold
        self._events = {
            str(event["event_id"]).casefold(): {**event, **_UNSEEN, "last_not_before": event.get("not_before")}
            for event in events
        }
        self._absences = 0
        self.busy: list[str] = []

    @property
    def events(self) -> list[dict[str, t.Any]]:
        """The events, each with the times when it was first seen started and first missing."""
        return list(self._events.values())

    def ended(self, document: EventDocument) -> bool:
        """Return True if the host may recover; called once per good document."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        listed = [event for event in document.events if event.key in self._events]
        added = [
            event for event in document.events if event.key not in self._events and self._is_relevant(event, document)
        ]
        moved = [event for event in listed if self._is_moved(event)]
        if added or moved:
            self._hold([event.as_dict() for event in added + moved])
        for held in self._events.values():
            held["listed"] = False
        for event in listed + added:
            known = self._events.setdefault(event.key, {**_UNSEEN, "last_not_before": None})
            started = known["started"] or (now if event.status == "Started" else None)
            known.update(event.as_dict(), listed=True, started=started, over=None, ended_early=False)
            # a started event has none
            known["last_not_before"] = known["not_before"] or known["last_not_before"]
        for held in self._events.values():
            if not held["listed"] and document.complete and not held["over"]:
                held.update(over=now, ended_early=_ends_early(held, document))
        self.busy = [] if listed or added else self._processes()
        is_absent = document.complete and not (listed or added or self.busy)
        self._absences = self._absences + 1 if is_absent else 0
        return self._absences >= ABSENCES_NEEDED

    def confirms(self) -> bool:
        """Return True if one more document without the events would end the wait."""
        return self._absences == ABSENCES_NEEDED - 1

    def blocked_by(self) -> str:
        """Return why the host may not recover yet."""
        pending = [
            f"{event['event_type']} {event['event_id']} is {event['status']}"
            for event in self.events
            if event["listed"]
        ]
        if pending:
            return ", ".join(pending)
        if self.busy:
            return f"a command of the preparation is still running: process {', '.join(self.busy)}"
        return "IMDS has not confirmed that the events are over"

    def _is_moved(self, event: ScheduledEvent) -> bool:
        not_before = event.as_dict()["not_before"]
        return not_before is not None and not_before != self._events[event.key]["last_not_before"]

    def _is_relevant(self, event: ScheduledEvent, document: EventDocument) -> bool:
        if not is_due(event, document, self._within):
            return False
        if not event.resources or event.key in document.doubtful:
            # its VMs are unreadable: it may affect this one
            return self._selection._replace(affects=ANY).matches(event, None)
        return self._selection.matches(event, self._own_name())
