# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides on the host for which events it is prepared, and when it may recover."""

from __future__ import annotations

import os
import re
import stat
import typing as t
from datetime import datetime, timezone

from .azure_scheduled_events.document import EventDocument, ScheduledEvent
from .azure_scheduled_events.identity import vm_key
from .azure_scheduled_events.printable import printable
from .azure_scheduled_events.release import all_vms
from .azure_scheduled_events.selection import Selection
from .azure_scheduled_events.session import ImdsSession
from .azure_scheduled_events.tracking import UNLISTED, Observation, Sighting, Tracker
from .azure_scheduled_events.waiting import wait_for

# environment variable of the caller's tasks: the id of the run, and the step
RUN_VARIABLE = "AZURE_MAINTENANCE_RUN"
PREPARE = "prepare"
RECOVER = "recover"
# seconds; documents with unreadable entries confirm no absence
_EXPECTED_TIMEOUT = 10.0

_UNSEEN: dict[str, t.Any] = {"listed": False, "over": None}


def is_due(event: ScheduledEvent, document: EventDocument, within: float) -> bool:
    """Return True if the event has started, or may start within ``within`` seconds by the server's clock."""
    now = document.server_time or datetime.now(timezone.utc)
    return event.seconds_left(now) <= within


def read_expected(imds: ImdsSession, name_required: bool, expected: t.Iterable[t.Mapping[str, t.Any]]) -> EventDocument:
    """Return a document that names this VM for each expected event, unless the VM is surely not affected by it.

    Other reporters have listed the events of ``expected``, each with ``event_id`` and ``resources``: the backend that
    answers here may be a slower one. Raise ImdsError if the events cannot be read.
    """
    document = imds.read_events(name_required)
    own = vm_key(imds.resource_name or "")
    known = [
        UNLISTED._replace(event_id=event["event_id"], resources=(own,))
        for event in expected
        if own in all_vms([event["resources"]])
    ]
    keys = {event.key for event in known}

    def is_sure(seen: Observation) -> bool:
        found = [sighting for key, sighting in seen.events.items() if key in keys]
        return all(own in sighting.named or own not in all_vms([sighting.event.resources]) for sighting in found)

    tracker = Tracker(known)
    if is_sure(tracker.observe(document)):
        return document
    waited = wait_for(imds, name_required, tracker, is_sure, min(imds.time_left(), _EXPECTED_TIMEOUT))
    return waited.document or document


def processes_of(runs: t.Collection[str], step: str, younger_than: float = 0, proc: str = "/proc") -> list[str]:
    """Return the running processes of root and of this user that tasks of a step started.

    A command continues when the connection to the host is lost, or the controller is killed. Each process is its id
    and the beginning of its command line. Those of other users do not count: each user of the host can read the id of
    the run, and start a process with the variable.

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
            is_marked = any(mark in environment for mark in marks) and _is_trusted(proc, pid)
            if is_marked and not 0 < younger_than <= _age(proc, pid):
                command = _read(proc, pid, "cmdline").replace("\0", " ")
                found.append(f"{pid} ({printable(command[:60].strip())})")
        except OSError:
            pass  # the process has ended, or belongs to another user
    return found


def _is_trusted(proc: str, pid: str) -> bool:
    """Return True if root or this user started the process."""
    # the owner of the folder in proc is root also for some processes of other users
    users = re.search("^Uid:(.*)$", _read(proc, pid, "status"), re.MULTILINE)
    if users is None or not {int(user) for user in users[1].split()} <= {0, os.geteuid()}:
        return False
    # sudo, for one, is a process of root while it asks any user for a password
    return not os.stat(os.path.join(proc, pid, "exe")).st_mode & stat.S_ISUID


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
        hold: called with the events to write into the note: added ones, those whose NotBefore has moved, and those that
            were first seen started, which the next process knows even if the result of this one is lost with the host.
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
        # an event of the note counts whatever its other values
        self._of_note = Selection(affects=selection.affects, advice=True)
        self._within = within
        self._own_name = own_name
        self._processes = processes
        self._hold = hold
        self._events = {
            str(event["event_id"]).casefold(): {
                **event,
                **_UNSEEN,
                "started": _started(event, _now()),
                "last_not_before": event.get("not_before"),
            }
            for event in events
        }
        self.tracker = Tracker([UNLISTED, *map(_as_known, self._events.values())])
        self.busy: list[str] = []

    @property
    def events(self) -> list[dict[str, t.Any]]:
        """The events, each with the times when it was first seen started and when it was over."""
        return list(self._events.values())

    def ended(self, seen: Observation) -> bool:
        """Return True if the host may recover; called once per good document, with the observation of ``tracker``."""
        now = _now()
        self._take_in(seen, now)
        for key, held in self._events.items():
            sighting = seen.events.get(key)
            held["listed"] = sighting is not None and sighting.listed
            if sighting is not None and self._may_be_in(self._of_note, sighting):
                held.update(over=None)
            elif held["over"] is None:
                held.update(over=now)
        pending = UNLISTED.key in seen.events or any(held["over"] is None for held in self._events.values())
        self.busy = [] if pending else self._processes()
        return seen.document.complete and not pending and not self.busy

    def blocked_by(self) -> str:
        """Return why the host may not recover yet."""
        pending = [
            f"{event['event_type']} {event['event_id']} is {event['status']}"
            for event in self.events
            if event["listed"] and event["over"] is None
        ]
        if pending:
            return ", ".join(pending)
        if self.busy:
            return f"a command of the preparation is still running: process {', '.join(self.busy)}"
        return "IMDS has not confirmed that the events are over"

    def _take_in(self, seen: Observation, now: str) -> None:
        """Update the listed events, and hold those that the note has to know."""
        found = []
        for key, sighting in seen.events.items():
            held = self._events.get(key)
            if not sighting.listed or (held is None and not self._is_relevant(sighting, seen.document)):
                continue
            before = held or {**_UNSEEN, "started": None, "last_not_before": None}
            event = {**sighting.event.as_dict(), "started": before["started"]}
            event["started"] = _started(event, now)
            # a started event has none
            not_before = event["not_before"] or before["last_not_before"]
            if held is None or (not_before, event["started"]) != (before["last_not_before"], before["started"]):
                found.append(event)  # the note keeps the NotBefore that it has
            self._events[key] = {**before, **event, "last_not_before": not_before}
        if found:
            self._hold(found)

    def _is_relevant(self, sighting: Sighting, document: EventDocument) -> bool:
        return is_due(sighting.event, document, self._within) and self._may_be_in(self._selection, sighting)

    def _may_be_in(self, selection: Selection, sighting: Sighting) -> bool:
        return selection.may_match(sighting.event, sighting.readable, self._own_name())


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _started(event: t.Mapping[str, t.Any], now: str) -> str | None:
    """Return when the event was first seen started, ``now`` if that is not known, or None if it was not."""
    return event.get("started") or (now if event.get("status") == "Started" else None)


def _as_known(event: t.Mapping[str, t.Any]) -> ScheduledEvent:
    """Return an event of the note as far as a Tracker needs it."""
    resources = tuple(event.get("resources") or ())
    return UNLISTED._replace(event_id=str(event["event_id"]), status=event.get("status", ""), resources=resources)
