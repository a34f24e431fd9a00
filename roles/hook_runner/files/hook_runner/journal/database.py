# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Creates and opens the journal's file, quarantines an unusable one, and reserves room for a full disk."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import time
from typing import Callable, NamedTuple
from urllib.parse import quote

from hook_runner.journal import rows
from hook_runner.journal.schema import (
    UnusableJournal,
    check_tables,
    check_usable,
    create_tables,
    is_corruption,
    schema_version,
)
from hook_runner.permissions import make_folder, trusted_owners

SIDECAR_SUFFIXES = ("-wal", "-shm", "-journal")

# bytes that are reserved for a full disk: this much in the log, and as much in the tables
RESERVE = 256 * 1024
# transactions after which the log is copied into the file: the log and one more transaction stay
# within the reserve
CHECKPOINT_EVERY = 4

# KiB of pages and number of prepared statements in memory; the defaults are ten times as much, and a
# transaction needs less
CACHE = 64
STATEMENTS = 8

# a disk that damages the journal again and again must not fill up with quarantined files
MAX_QUARANTINED = 5
# end of the name of a quarantined file
_QUARANTINED_NAME = re.compile(r"-\d{8}T\d{6}Z(-\d+)?$")


Commit = Callable[[sqlite3.Connection], None]


def open_for_writing(
    path: str, say: Callable[[str], None], commit: Commit, now: float, busy_timeout: float
) -> sqlite3.Connection:
    """Open the journal, or begin a new one if it is missing or unusable.

    Args:
        path: the file; its folder is created if it is missing.
        say: logs a sentence.
        commit: ends each transaction.
        now: seconds since 1970, for the name of a quarantined file.
        busy_timeout: seconds that another program may hold the file.

    Raises:
        OSError: it cannot be created or renamed.
        sqlite3.Error: it cannot be written now.
    """
    try:
        return _open_or_begin(path, say, commit, busy_timeout)
    except UnusableJournal as reason:
        replace(path, reason, say, now)
    return _open_or_begin(path, say, commit, busy_timeout)


def replace(path: str, reason: UnusableJournal, say: Callable[[str], None], now: float) -> None:
    """Quarantine the file if it exists, and log the reason. Raises OSError."""
    if os.path.lexists(path):
        aside = quarantine(path, reason.label, now)
        begins = "a new one begins with the records in memory"
        say(f"the journal {path} cannot be used: {reason}; it is kept as {aside}, and {begins}")


def open_for_reading(path: str, busy_timeout: float) -> sqlite3.Connection:
    """Open the journal without changing it, also as a user who may not write it or while the daemon writes it.

    Another program may hold the file for `busy_timeout` seconds. If SQLite cannot create the files beside it,
    the file is opened as unchangeable where it has no log; otherwise a copy of both is opened.

    Raises:
        UnusableJournal: it is not a journal that this program can use, or an empty file.
        OSError: it cannot be found or read.
        sqlite3.Error: it cannot be read now.
    """
    os.stat(path)  # its error is clearer than that of SQLite
    uri = f"file:{quote(os.path.abspath(path))}?mode=ro"
    try:
        return _open_checked(uri, busy_timeout)
    except sqlite3.OperationalError:
        # SQLite tries to create the files beside it, which this user may not; they are missing
        # because no process has it open
        if not _has_log(path):
            return _open_checked(uri + "&immutable=1", busy_timeout)
        return _copied(path, busy_timeout)


def try_to_write(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.Error if the file cannot be written; changes nothing. Call it in a transaction.

    SQLite opens a file that it may not write for reading, without an error, and even BEGIN
    IMMEDIATE succeeds there.
    """
    connection.execute("DELETE FROM reserve WHERE 0")


def checkpoint(connection: sqlite3.Connection) -> None:
    """Copy the log into the file; a part that cannot be copied now stays in the log.

    SQLite could do this within a transaction, but then a change of the file would not show that
    another program made it.
    """
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    except sqlite3.Error:
        pass  # the log has everything


def is_worthless(error: Exception) -> bool:
    """Return True if a file that could not be opened has no records: it is missing, or not a journal."""
    if isinstance(error, UnusableJournal):
        return error.label in ("corrupt", "version-0")
    return isinstance(error, (FileNotFoundError, NotADirectoryError))


class Fingerprint(NamedTuple):
    """Identifies the journal's files and their content, to find out that they were replaced or changed.

    Attributes:
        identities: device and inode of the file and of those beside it; None for a missing one.
        contents: size in bytes and time of the last change, in ns, of the file and of its log.
    """

    identities: tuple[tuple[int, int] | None, ...]
    contents: tuple[tuple[int, int] | None, ...]


def fingerprint(path: str) -> Fingerprint:
    """Return the fingerprint of the journal's files without opening them."""
    found: list[os.stat_result | None] = []
    for suffix in ("", "-wal", "-shm"):
        try:
            found.append(os.stat(path + suffix))
        except OSError:
            found.append(None)
    identities = tuple(None if each is None else (each.st_dev, each.st_ino) for each in found)
    return Fingerprint(
        identities, tuple(None if each is None else (each.st_size, each.st_mtime_ns) for each in found[:2])
    )


def quarantine(path: str, label: str, now: float) -> str:
    """Rename the journal and the files beside it; returns its new name."""
    stem = f"{path}.{label}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}"
    aside, number = stem, 1
    while os.path.lexists(aside):
        number += 1
        aside = f"{stem}-{number}"
    for suffix in SIDECAR_SUFFIXES:  # first: a new journal would take an old log for its own
        if os.path.lexists(path + suffix):
            os.replace(path + suffix, aside + suffix)
    os.replace(path, aside)
    _prune_quarantined(path)
    return aside


def _prune_quarantined(path: str) -> None:
    folder, name = os.path.split(os.path.abspath(path))
    kept = [
        entry
        for entry in os.listdir(folder)
        if entry.startswith(name + ".") and _QUARANTINED_NAME.search(entry) and not entry.endswith(SIDECAR_SUFFIXES)
    ]
    kept.sort(key=lambda entry: os.lstat(os.path.join(folder, entry)).st_mtime)
    for entry in kept[:-MAX_QUARANTINED]:
        for suffix in ("", *SIDECAR_SUFFIXES):
            try:
                os.unlink(os.path.join(folder, entry + suffix))
            except FileNotFoundError:
                pass
            except OSError:  # an empty folder that had the journal's name, unless it has been used since
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(folder, entry + suffix))


def _open_checked(uri: str, busy_timeout: float) -> sqlite3.Connection:
    connection = _connect(uri, busy_timeout, uri=True)
    try:
        check_usable(connection)
        if not schema_version(connection):
            raise UnusableJournal("version-0", "nothing has been written into it")
        check_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _copied(path: str, busy_timeout: float) -> sqlite3.Connection:
    """Open a copy if SQLite cannot read the log beside the journal; without the log, the journal is older."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "journal")
        for suffix in ("", "-wal"):
            shutil.copyfile(path + suffix, copy + suffix)
        return _open_checked(
            f"file:{quote(copy)}", busy_timeout
        )  # the files are removed with the folder, and stay open


def _has_log(path: str) -> bool:
    return os.path.exists(path + "-wal") and os.path.getsize(path + "-wal") > 0


def _open_or_begin(path: str, say: Callable[[str], None], commit: Commit, busy_timeout: float) -> sqlite3.Connection:
    """Open the journal for writing; an empty file becomes a new one.

    1. A folder of the journal's name is unusable if it is empty; otherwise it is an OSError.
    2. A file without content beside a log with content is unusable: SQLite would delete the log.
    3. A file that is damaged, of another version or another program, lacks a table, or has an open record that
       cannot be read, is unusable.
    4. A file that cannot be written is an error of SQLite. Without room for the reserve it is used
       nevertheless.
    """
    _create(path)
    if os.path.isdir(path):
        if os.listdir(path):
            raise IsADirectoryError("it is a folder that is not empty")
        raise UnusableJournal("corrupt", "it is an empty folder")
    if not os.path.getsize(path) and _has_log(path):
        raise UnusableJournal(
            "corrupt", "it is missing or empty, and the log beside it is not"
        )  # SQLite would delete the log
    connection = _connect(path, busy_timeout)
    try:
        check_usable(connection)
        connection.execute(f"PRAGMA cache_size = -{CACHE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # see checkpoint
        create_tables(connection, lambda: commit(connection))
        check_tables(connection)
        for record_id in rows.open_ids(connection):
            try:
                rows.load(connection, record_id)
            except ValueError as error:
                raise UnusableJournal("corrupt", str(error)) from None
        connection.execute("BEGIN IMMEDIATE")
        try_to_write(connection)
        connection.execute("ROLLBACK")
        try:
            _reserve(connection, commit)
        except sqlite3.OperationalError as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            say(f"the journal {path}: no room could be reserved, a full disk will stop it: {error}")
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error) and is_corruption(error):
            raise UnusableJournal("corrupt", str(error)) from None
        raise
    return connection


def _create(path: str) -> None:
    """Create folder and file with access for the daemon's user only; SQLite gives the files beside it the same mode.

    No group gets access: a process that may read the file may also lock it, and the daemon could
    not write then.
    """
    path = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(path)):
        make_folder(os.path.dirname(path), 0o700, trusted_owners())
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        # it is not opened here: closing it again would release SQLite's locks
        for suffix in ("", *SIDECAR_SUFFIXES):
            _keep_private(path + suffix)


def _keep_private(path: str) -> None:
    """Remove the access of other users."""
    try:
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
            os.chmod(path, 0o600)
    except (FileNotFoundError, PermissionError):
        pass  # another user's process only reads it


def _reserve(connection: sqlite3.Connection, commit: Commit) -> None:
    """Let log and tables grow now; later writing needs no more room.

    The log keeps its size when it begins again, and the tables keep the pages of deleted rows. It
    takes two transactions: pages that are taken and returned in one are never written, and the file
    system reserves no room for them.
    """
    for statement in (f"INSERT INTO reserve VALUES (zeroblob({RESERVE}))", "DELETE FROM reserve"):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement)
        commit(connection)
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()


def _connect(name: str, busy_timeout: float, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        name, timeout=busy_timeout, isolation_level=None, cached_statements=STATEMENTS, uri=uri
    )
    # as by default, except the error: a text that is not UTF-8 is a ValueError, not a fault of the
    # disk
    connection.text_factory = bytes.decode
    return connection
