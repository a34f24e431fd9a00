# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Version 0.1.0 reads and writes a journal of this version, and this version reads it afterwards."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hook_runner.journal.journal import Journal
from hook_runner.records import Cause
from support.daemon.record_factory import add_step, make_record

# the column lists of version 0.1.0, verbatim
VERSION = 1
RECORD = (
    "id, key, life, first_seen, first_type, first_status, concerned, seen_started, gone_at, outcome, approval,"
    " approval_reason, approval_attempts, approval_asked_by, approval_forced, closed_at, event"
)
STEP = "id, record, stage, hook, attempt, state, reason, started_at, ended_at, exit_status, output"


def test_journal_is_read_and_written_by_the_version_before_and_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    journal = Journal.open(path, print)
    record = make_record(journal.next_id(), "E-1")
    record.approval_error = "refused"
    add_step(record, journal.next_id()).boot = "boot 1"
    assert journal.save(record)
    journal.note("resource_name", "vm1")
    journal.close()

    older = sqlite3.connect(path)
    assert older.execute("PRAGMA user_version").fetchone() == (VERSION,)
    (row,) = older.execute(f"SELECT {RECORD} FROM records WHERE closed_at IS NULL").fetchall()
    (step,) = older.execute(f"SELECT {STEP} FROM steps WHERE record = ?", row[:1]).fetchall()
    other = (row[0] + 10, "e-2", *row[2:-1], row[-1].replace("E-1", "E-2"))
    left_out = dict(
        zip(STEP.split(", "), step),
        id=step[0] + 11,
        record=other[0],
        state="skipped",
        reason="too little time is left (3 s)",
    )
    late = dict(left_out, id=step[0] + 12, state="timeout", reason="the event may start in 4 s")
    added_steps = ((step[0] + 10, other[0], *step[2:]), tuple(left_out.values()), tuple(late.values()))
    for table, columns, values in (("records", RECORD, other), *(("steps", STEP, values) for values in added_steps)):
        older.execute(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(values))})", values)
    older.commit()
    older.close()

    said: list[str] = []
    journal = Journal.open(path, said.append)
    kept, added = journal.open_records()
    assert said == [] and journal.noted("resource_name") == "vm1"
    assert (kept.approval_error, [each.boot for each in kept.steps]) == ("refused", ["boot 1"])
    assert (added.key, added.approval_error, [(each.boot, each.void, each.cause) for each in added.steps]) == (
        "e-2",
        "",
        [("", "", Cause.NONE), ("", "", Cause.NO_TIME), ("", "", Cause.DEADLINE)],
    )
    journal.close()
