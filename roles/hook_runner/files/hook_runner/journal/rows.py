# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Converts records to rows of the journal's tables and back, without loss.

Results are always read to their end: an unfinished statement would keep SQLite from closing the
file.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import Any, Union

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.records import Cause, EventRecord, HookRun, TimelineEntry

_RECORD_COLUMNS = (
    "id",
    "key",
    "life",
    "first_seen",
    "first_type",
    "first_status",
    "concerned",
    "seen_started",
    "gone_at",
    "outcome",
    "approval",
    "approval_reason",
    "approval_attempts",
    "approval_asked_by",
    "approval_forced",
    "closed_at",
    "event",
    "approval_error",
)
_STEP_COLUMNS = (
    "id",
    "record",
    "stage",
    "hook",
    "attempt",
    "state",
    "reason",
    "started_at",
    "ended_at",
    "exit_status",
    "output",
    "boot",
    "void",
    "cause",
    "event_type",
)


def _upsert(table: str, columns: tuple[str, ...]) -> str:
    # not INSERT OR REPLACE: that deletes the old row and every row that refers to it
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) ON CONFLICT (id) DO UPDATE SET {changes}"


_SAVE_RECORD = _upsert("records", _RECORD_COLUMNS)
_SAVE_STEP = _upsert("steps", _STEP_COLUMNS)

Value = Union[None, int, str, bytes]


def save_record(connection: sqlite3.Connection, record: EventRecord) -> None:
    """Write the record's own row."""
    connection.execute(
        _SAVE_RECORD,
        (
            record.id,
            _text(record.key),
            record.occurrence,
            _time(record.first_seen),
            _text(record.first_type),
            _text(record.first_status),
            int(record.affects_this_vm),
            int(record.seen_started),
            _time(record.gone_at),
            _text(record.outcome),
            _text(record.approval),
            _text(record.approval_reason),
            record.approval_attempts,
            _text(record.approval_asked_by),
            int(record.approval_forced),
            _time(record.closed_at),
            json.dumps(record.event.to_json()),
            _text(record.approval_error),
        ),
    )


def step_row(record: EventRecord, step: HookRun) -> tuple[Value, ...]:
    """Return the row of a run; equal rows need not be written again."""
    return (
        step.id,
        record.id,
        _text(step.stage),
        _text(step.hook),
        step.attempt,
        _text(step.state),
        _text(step.reason),
        _time(step.started_at),
        _time(step.ended_at),
        step.exit_status,
        _text(step.output),
        step.boot,
        _text(step.void),
        step.cause.value,
        _text(step.event_type),
    )


def save_step(connection: sqlite3.Connection, row: tuple[Value, ...]) -> None:
    """Write a row of `step_row`."""
    connection.execute(_SAVE_STEP, row)


def save_entries(connection: sqlite3.Connection, record: EventRecord, known: int) -> None:
    """Write the entries of the timeline after the first `known`."""
    rows = [
        (record.id, position, _time(at), _text(what), _text(detail))
        for position, (at, what, detail) in enumerate(record.timeline[known:], known)
    ]
    connection.executemany(
        "INSERT OR REPLACE INTO timeline (record, position, at, what, detail) VALUES (?, ?, ?, ?, ?)", rows
    )


def last_id(connection: sqlite3.Connection) -> int:
    """Return the highest number of a record or a run."""
    query = "SELECT max(coalesce((SELECT max(id) FROM records), 0), coalesce((SELECT max(id) FROM steps), 0))"
    return int(connection.execute(query).fetchone()[0])


def save_note(connection: sqlite3.Connection, name: str, value: str) -> None:
    """Write a note; see `Journal.note`."""
    connection.execute("INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)", (name, _text(value)))


def notes(connection: sqlite3.Connection) -> dict[str, str]:
    """Return all notes by name."""
    return {name: _decode_text(value) for name, value in connection.execute("SELECT name, value FROM notes").fetchall()}


def open_ids(connection: sqlite3.Connection) -> list[int]:
    """Return the numbers of the records that are not closed, oldest first."""
    return [
        row[0] for row in connection.execute("SELECT id FROM records WHERE closed_at IS NULL ORDER BY id").fetchall()
    ]


def newest_ids(connection: sqlite3.Connection, limit: int, key: str | None, before: int | None = None) -> list[int]:
    """Return the numbers of the newest records, newest first, of one event or of all.

    With `before`, only smaller numbers count.
    """
    # no "? IS NULL OR key = ?": SQLite would scan the records of all events
    conditions = ["id < ?"]
    values: list[Value] = [2**63 - 1 if before is None else before]
    if key is not None:
        conditions.append("key = ?")
        values.append(_text(key))
    query = f"SELECT id FROM records WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"
    return [row[0] for row in connection.execute(query, (*values, limit)).fetchall()]


def keys_beginning(connection: sqlite3.Connection, start: str, limit: int) -> list[str]:
    """Return the keys of events that begin with `start`, sorted."""
    query = "SELECT DISTINCT key FROM records WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key LIMIT ?2"
    return [_decode_text(row[0]) for row in connection.execute(query, (_text(start), limit)).fetchall()]


def keys_gone_since(connection: sqlite3.Connection, at: datetime) -> set[str]:
    """Return the keys of the events that were gone at this time or later."""
    query = "SELECT DISTINCT key FROM records WHERE gone_at >= ?"
    return {_decode_text(row[0]) for row in connection.execute(query, (_time(at),)).fetchall()}


def prune(connection: sqlite3.Connection, keep: int) -> None:
    """Delete the closed records except the newest `keep`."""
    closed = "SELECT id FROM records WHERE closed_at IS NOT NULL ORDER BY id DESC LIMIT -1 OFFSET ?"
    connection.execute(f"DELETE FROM records WHERE id IN ({closed})", (max(0, keep),))


def load(connection: sqlite3.Connection, record_id: int) -> EventRecord:
    """Return a record with its runs and its timeline. Raises ValueError if its content is invalid."""
    columns = connection.execute(
        f"SELECT {', '.join(_RECORD_COLUMNS)} FROM records WHERE id = ?", (record_id,)
    ).fetchone()
    try:
        row = dict(zip(_RECORD_COLUMNS, columns))
        record = EventRecord(
            row["id"],
            int(row["life"]),
            ScheduledEvent.from_json(json.loads(row["event"])),
            _decode_time(row["first_seen"]),
        )
        for name in (
            "first_type",
            "first_status",
            "outcome",
            "approval",
            "approval_reason",
            "approval_asked_by",
            "approval_error",
        ):
            setattr(record, name, _decode_text(row[name]))
        record.affects_this_vm, record.seen_started = bool(row["concerned"]), bool(row["seen_started"])
        record.gone_at, record.closed_at = (
            _decode_optional_time(row["gone_at"]),
            _decode_optional_time(row["closed_at"]),
        )
        record.approval_attempts, record.approval_forced = int(row["approval_attempts"]), bool(row["approval_forced"])
        steps = connection.execute(
            f"SELECT {', '.join(_STEP_COLUMNS)} FROM steps WHERE record = ? ORDER BY id", (record_id,)
        ).fetchall()
        record.steps.extend(_step(dict(zip(_STEP_COLUMNS, columns))) for columns in steps)
        lines = connection.execute(
            "SELECT at, what, detail FROM timeline WHERE record = ? ORDER BY position", (record_id,)
        ).fetchall()
        record.timeline.extend(
            TimelineEntry(_decode_time(at), _decode_text(what), _decode_text(detail)) for at, what, detail in lines
        )
    except (TypeError, KeyError, OverflowError, ValueError) as error:
        raise ValueError(f"record {record_id} cannot be read: {error}") from None
    return record


def _step(row: dict[str, Any]) -> HookRun:
    step = HookRun(
        row["id"],
        _decode_text(row["stage"]),
        _decode_text(row["hook"]),
        int(row["attempt"]),
        _decode_text(row["state"]),
        _decode_optional_time(row["started_at"]),
    )
    step.reason, step.output = _decode_text(row["reason"]), _decode_text(row["output"])
    step.ended_at, step.exit_status = _decode_optional_time(row["ended_at"]), row["exit_status"]
    step.boot, step.void, step.cause = _decode_text(row["boot"]), _decode_text(row["void"]), Cause(row["cause"])
    step.event_type = _decode_text(row["event_type"])
    return step


def _text(text: str) -> str | bytes:
    """Return a text as SQLite takes it: a blob if it has surrogates, which JSON of IMDS and file names may have."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _decode_text(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else str(value)


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _decode_optional_time(text: str | None) -> datetime | None:
    return None if text is None else _decode_time(text)


def _decode_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"the time {text} has no zone")
    return time
