# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The push on disk: the events as they were reported last, and the deliveries that wait.

Both are written in one transaction. Therefore a killed daemon neither loses a change nor reports it
twice under two ids. The state is in memory as well: while the disk is full, the daemon goes on
without the file, and writes all of it later.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from typing import Callable, Iterable

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.named_tuple import NamedTuple
from hook_runner.journal.database import quarantine
from hook_runner.journal.schema import is_corruption
from hook_runner.push.delivery_queue import Delivery
from hook_runner.push.reported_events import Reported

FILE_NAME = "push.db"
# seconds between two attempts to read or write a file that could not be read or written
RETRY_INTERVAL = 5.0
# seconds that another program may hold the file
BUSY_TIMEOUT = 0.5
VERSION = 1

_TABLES = (
    "CREATE TABLE vm (name TEXT NOT NULL, vm_id TEXT NOT NULL)",
    "CREATE TABLE reported (key TEXT PRIMARY KEY, event TEXT NOT NULL, number INTEGER NOT NULL, gone_at REAL)",
    "CREATE TABLE deliveries (number INTEGER PRIMARY KEY, id TEXT NOT NULL, key TEXT NOT NULL, created REAL NOT NULL,"
    " body BLOB NOT NULL)",
    f"PRAGMA user_version = {VERSION}",
)


class Vm(NamedTuple):
    """The VM whose changes a spool has: its resource name, and its vmId or ""."""

    name: str
    vm_id: str

    def is_other(self, than: Vm) -> bool:
        """Return True if this is not the same VM."""
        if self.vm_id and than.vm_id:
            return self.vm_id.casefold() != than.vm_id.casefold()
        return self.name.casefold() != than.name.casefold()


class Content(NamedTuple):
    """All that a spool has.

    Attributes:
        vm: whose changes these are; None in a new spool.
        reported: the events as they were reported last, by key.
        deliveries: those that wait, by number.
    """

    vm: Vm | None
    reported: dict[str, Reported]
    deliveries: dict[int, Delivery]


class _Unusable(Exception):
    """The content of the file cannot be used; ``label``: part of the name of the quarantined file."""

    def __init__(self, label: str, text: str) -> None:
        super().__init__(text)
        self.label = label


class Spool:
    """The file of the one daemon that writes it.

    Args:
        path: the file; its folder exists.
        say: logs a sentence.
        clock: monotonic seconds.
        wall: seconds since 1970, for the name of a quarantined file.

    Attributes:
        error: a sentence while the file lacks something; "" while it has everything.
    """

    def __init__(
        self,
        path: str,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.error = ""
        self._path, self._say, self._clock, self._wall = path, say, clock, wall
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._tried_at = float("-inf")

    def is_due(self) -> bool:
        """Return True if `load` or `write` should be tried again after an error."""
        return bool(self.error) and self._clock() - self._tried_at >= RETRY_INTERVAL

    def load(self) -> Content | None:
        """Return the content of the file; None if it cannot be read now. A file that cannot be used is quarantined."""
        self._tried_at = self._clock()
        try:
            content = self._read()
        except _Unusable as reason:
            content = Content(None, {}, {})
            self._replace(reason)
        except (OSError, sqlite3.Error) as error:
            self._close()
            self._fail("read", error)
            return None
        self.error = ""
        return content

    def write(self, content: Content, keys: Iterable[str] = (), numbers: Iterable[int] = ()) -> None:
        """Write what has changed; the whole content if the file lacks something, or is another one. Never raises.

        Args:
            content: all that the file is to have.
            keys: of the events that have changed, in `content` or no longer in it.
            numbers: the same of deliveries.
        """
        if self.error and not self.is_due():
            return
        self._tried_at = self._clock()
        for _attempt in range(2):
            try:
                if self.error or self._connection is None or self._identity != _identity(self._path):
                    self._rewrite(content)
                else:
                    self._update(self._connection, content, keys, numbers)
            except sqlite3.Error as error:
                self._close()
                if is_corruption(error):
                    self._replace(_Unusable("corrupt", str(error)))
                    continue
                self._fail("written", error)
                return
            except OSError as error:
                self._close()
                self._fail("written", error)
                return
            if self.error:
                self._say(f"the spool {self._path} is written again, and is complete")
                self.error = ""
            return

    def write_all(self, content: Content) -> None:
        """Write the whole content. Never raises."""
        self._close()
        self.write(content)

    def close(self) -> None:
        """Close the file."""
        self._close()

    def _read(self) -> Content:
        if not os.path.lexists(self._path):
            return Content(None, {}, {})
        try:
            connection = self._open()
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version > VERSION:
                raise _Unusable(f"version-{version}", f"it has version {version}, and this program knows {VERSION}")
            found = connection.execute("PRAGMA main.quick_check(1)").fetchone()[0]
            if found != "ok":
                raise _Unusable("corrupt", str(found).replace("\n", " "))
            if not version:
                self._close()  # a process ended before it had made the tables; the next write makes them
                return Content(None, {}, {})
            vms = connection.execute("SELECT name, vm_id FROM vm").fetchall()
            reported = connection.execute("SELECT key, event, number, gone_at FROM reported").fetchall()
            deliveries = connection.execute(
                "SELECT number, id, key, created, body FROM deliveries ORDER BY number"
            ).fetchall()
            return Content(
                Vm(*vms[0]) if vms else None,
                {key: Reported(_event(text), number, gone_at) for key, text, number, gone_at in reported},
                {row[0]: Delivery(*row) for row in deliveries},
            )
        except (ValueError, TypeError) as error:
            raise _Unusable("corrupt", str(error)) from None
        except sqlite3.Error as error:
            if is_corruption(error) or str(error).startswith("no such"):
                raise _Unusable("corrupt", str(error)) from None
            raise

    def _rewrite(self, content: Content) -> None:
        """Write everything into the file of the spool's name."""
        self._close()
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        if not int(connection.execute("PRAGMA user_version").fetchone()[0]):
            for statement in _TABLES:
                connection.execute(statement)
        for table in ("vm", "reported", "deliveries"):
            connection.execute(f"DELETE FROM {table}")
        if content.vm is not None:
            connection.execute("INSERT INTO vm VALUES (?, ?)", content.vm)
        self._put(connection, content, content.reported, content.deliveries)
        self._commit(connection)

    def _update(
        self, connection: sqlite3.Connection, content: Content, keys: Iterable[str], numbers: Iterable[int]
    ) -> None:
        connection.execute("BEGIN IMMEDIATE")
        self._put(connection, content, keys, numbers)
        self._commit(connection)

    @staticmethod
    def _put(connection: sqlite3.Connection, content: Content, keys: Iterable[str], numbers: Iterable[int]) -> None:
        for key in keys:
            event = content.reported.get(key)
            if event is None:
                connection.execute("DELETE FROM reported WHERE key = ?", (key,))
            else:
                text = json.dumps(event.event.to_json())
                connection.execute(
                    "INSERT OR REPLACE INTO reported VALUES (?, ?, ?, ?)", (key, text, event.number, event.gone_at)
                )
        for number in numbers:
            delivery = content.deliveries.get(number)
            if delivery is None:
                connection.execute("DELETE FROM deliveries WHERE number = ?", (number,))
            else:
                connection.execute("INSERT OR REPLACE INTO deliveries VALUES (?, ?, ?, ?, ?)", delivery)

    def _commit(self, connection: sqlite3.Connection) -> None:
        """The one place where a change becomes durable: tests kill the process before and after it."""
        connection.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = self._connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT, isolation_level=None)
        self._identity = _identity(self._path)
        connection.execute("PRAGMA cache_size = -64")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _replace(self, reason: _Unusable) -> None:
        """Quarantine a file whose content cannot be used."""
        self._close()
        try:
            aside = quarantine(self._path, reason.label, self._wall())
        except OSError as error:
            self._fail("replaced", error)
            return
        self._say(f"the spool {self._path} cannot be used: {reason}; it is kept as {aside}, and a new one begins")

    def _fail(self, what: str, reason: object) -> None:
        text = f"the spool {self._path} cannot be {what}: {reason}"
        if text != self.error:
            self._say(text + "; changes that are not delivered before a restart may be pushed twice or be lost")
        self.error = text


def _event(text: str) -> ScheduledEvent:
    return ScheduledEvent.from_json(json.loads(text))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
