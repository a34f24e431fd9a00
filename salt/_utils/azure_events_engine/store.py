# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The SQLite file of the engine, with maintenances and observed names.

A damaged file is quarantined. The holds of operators are rescued from it as far as they can be
read; preparations are known from the records of the minions.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events import durable_file
from azure_scheduled_events.tracking import Sighting

from .answers import PREPARED, tracked_event
from .state import Approval, Hold, Maintenance, Member, Order

_VERSION = 2
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS maintenances (key TEXT PRIMARY KEY, held INTEGER NOT NULL, contents TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS names (minion TEXT PRIMARY KEY, vm TEXT NOT NULL)",
)
# errors of a file that is damaged, or of another version
_UNREADABLE = (sqlite3.DatabaseError, ValueError, LookupError, TypeError, AttributeError)


class StoreError(Exception):
    """The file cannot be read or written."""


class Loaded(NamedTuple):
    """The content of a store. ``problem`` names the loss, or is ""."""

    maintenances: dict[str, Maintenance]
    names: dict[str, str]
    problem: str


class Store:
    """The file at a path; opened by ``load``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def load(self, now: float) -> Loaded:
        """Open the file and read it, after quarantining a damaged one; raise StoreError on failure."""
        problem = ""
        for _attempt in range(2):
            try:
                self._open()
                return Loaded(*self._read(now), problem)
            except _UNREADABLE as error:
                problem = self._quarantine(error)
        raise StoreError(problem)

    def save(self, changes: Mapping[str, Maintenance | None], names: Mapping[str, str]) -> None:
        """Write maintenances (None removes one) and observed names.

        Nothing is written if it raises StoreError; then a file that was damaged has its holds alone.
        """
        rows = [
            (key, maintenance.hold is not None, json.dumps(as_dict(maintenance)))
            for key, maintenance in changes.items()
            if maintenance is not None
        ]
        try:
            connection = self.connection()
            with connection:
                connection.executemany("INSERT OR REPLACE INTO maintenances VALUES (?, ?, ?)", rows)
                connection.executemany(
                    "DELETE FROM maintenances WHERE key = ?", [(key,) for key, one in changes.items() if one is None]
                )
                connection.executemany("INSERT OR REPLACE INTO names VALUES (?, ?)", list(names.items()))
        except sqlite3.Error as error:
            raise StoreError(self._quarantine(error)) from error

    def forget_names(self, minions: list[str]) -> None:
        """Remove the observed names of minions; raise StoreError on failure."""
        try:
            with self.connection() as connection:
                connection.executemany("DELETE FROM names WHERE minion = ?", [(minion,) for minion in minions])
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def connection(self) -> sqlite3.Connection:
        """Return the open connection; raise StoreError or sqlite3.Error on failure."""
        return self._connection if self._connection is not None else self._open()

    def _open(self) -> sqlite3.Connection:
        folder = os.path.dirname(self.path)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreError(f"{self.path}: {error}") from error
        self._connection = sqlite3.connect(self.path, timeout=5.0)
        self._connection.execute("PRAGMA synchronous = FULL")
        with self._connection as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"the file is of version {version}, expected {_VERSION}")
            # write nothing into a complete file: it must be readable while the disk is full
            if version == 0:
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        return self._connection

    def _read(self, now: float) -> tuple[dict[str, Maintenance], dict[str, str]]:
        connection = self.connection()
        (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise ValueError(state)
        rows = connection.execute("SELECT key, contents FROM maintenances").fetchall()
        names = dict(connection.execute("SELECT minion, vm FROM names").fetchall())
        return {key: from_dict(json.loads(contents), now) for key, contents in rows}, names

    def _quarantine(self, error: Exception) -> str:
        """Replace a damaged file by one with its readable holds, and return a message.

        Raises:
            StoreError: the disk or another process is the cause of the error, or the file cannot be replaced.
        """
        is_damaged = not isinstance(error, (sqlite3.OperationalError, sqlite3.InterfaceError))
        held = self._readable_holds() if is_damaged else []
        self.close()
        if not is_damaged:
            raise StoreError(f"{self.path}: {error}") from error
        try:
            # a full disk must not lose the damaged file
            with durable_file.replacing(self.path) as draft:
                with contextlib.closing(Store(draft)) as new, new.connection() as connection:
                    connection.executemany("INSERT OR REPLACE INTO maintenances VALUES (?, 1, ?)", held)
                for name in ("-journal", "-wal", "-shm"):
                    durable_file.remove(self.path + name)
                aside = durable_file.set_aside(self.path)
        except (sqlite3.Error, OSError, StoreError) as problem:
            raise StoreError(f"{self.path}: damaged ({error}), and cannot be replaced: {problem}") from problem
        rescued = f"{len(held)} holds of operators could be read"
        return f"{self.path} is damaged ({error}) and was set aside as {aside}; {rescued}"

    def _readable_holds(self) -> list[tuple[str, str]]:
        found = []
        with contextlib.suppress(sqlite3.Error):
            if self._connection is not None:
                for key, contents in self._connection.execute("SELECT key, contents FROM maintenances WHERE held"):
                    with contextlib.suppress(*_UNREADABLE):
                        from_dict(json.loads(contents), 0.0)
                        found.append((str(key), str(contents)))
        return found


def as_dict(maintenance: Maintenance) -> dict[str, Any]:
    """Return the part of a maintenance that is stored, as plain JSON values."""
    approval, order = maintenance.approval, maintenance.forced
    # store each list once, because most minions of an event have the same one
    lists = {
        resources: index
        for index, resources in enumerate(dict.fromkeys(member.resources for member in maintenance.members.values()))
    }
    return {
        "event_id": maintenance.event_id,
        "event_type": maintenance.event_type,
        "not_before": maintenance.not_before,
        "members": {
            minion: {
                "present": member.present,
                "returned": member.returned,
                "status": member.status,
                "resources": lists[member.resources],
                "record": member.record != "",
            }
            for minion, member in maintenance.members.items()
        },
        "resources": [list(resources) for resources in lists],
        # an approval that was not answered is decided again
        "approval": approval._replace(job=0, asked_at=0.0)._asdict() if approval and approval.outcome else None,
        "hold": maintenance.hold._asdict() if maintenance.hold is not None else None,
        "forced": dict(order._asdict(), types=sorted(order.types), vms=sorted(order.vms))
        if order is not None
        else None,
        "announced": sorted(maintenance.announced),
        "withheld": maintenance.withheld,
        "over": maintenance.is_over,
    }


def from_dict(given: Mapping[str, Any], now: float) -> Maintenance:
    """Return the maintenance of stored values; raise ValueError, LookupError or TypeError for others.

    A preparation counts only after the minion has reported it again.
    """
    approval = Approval(**dict(given["approval"], job=0, asked_at=now)) if given["approval"] is not None else None
    order = given["forced"]
    lists = [tuple(resources) for resources in given["resources"]]
    members = {
        str(minion): Member(
            sighting=_sighting(given, member["status"], lists[member["resources"]]) if member["present"] else None,
            returned=bool(member["returned"]),
            record=PREPARED if member["record"] and not member["present"] else "",
            next_at=math.inf,
        )
        for minion, member in given["members"].items()
    }
    return Maintenance(
        event_id=given["event_id"],
        event_type=given["event_type"],
        not_before=given["not_before"],
        members=members,
        approval=approval,
        hold=Hold(**given["hold"]) if given["hold"] is not None else None,
        forced=Order(order["by"], order["at"], frozenset(order["types"]), frozenset(order["vms"]))
        if order is not None
        else None,
        announced=frozenset(given["announced"]),
        withheld=given["withheld"],
        last_answer_at=now,
        over_at=now if given["over"] else -math.inf,
    )


def _sighting(given: Mapping[str, Any], status: str, resources: tuple[str, ...]) -> Sighting:
    event = tracked_event(given["event_id"], given["event_type"], status, resources)
    return Sighting(event, listed=True, named=frozenset(), readable=True)
