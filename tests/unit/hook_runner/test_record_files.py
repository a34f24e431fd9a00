# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Records as JSON, and the history that is read from their files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hook_runner import record_files
from hook_runner.record_files import HISTORY, OPEN
from hook_runner.records import INTERRUPTED, Cause, EventRecord
from support.daemon.child_processes import in_child
from support.daemon.record_factory import NOON, add_step, close_record, end_step, everything, make_event, make_record

NOBODY = 65534


def full_record() -> EventRecord:
    record = make_record(7)
    end_step(record, add_step(record, 8))
    end_step(record, add_step(record, 9, "recover"), state=INTERRUPTED, exit_status=-9)
    record.steps[1].cause, record.steps[1].reason = Cause.HOST_SHUTDOWN, "the host went down"
    close_record(record)
    return record


def stored_again(record: EventRecord) -> EventRecord:
    return record_files.from_data(json.loads(json.dumps(record_files.to_data(record))))


def write(directory: Path, folder: str, *records: EventRecord) -> None:
    (directory / folder).mkdir(exist_ok=True)
    for record in records:
        record_files.write(str(directory / folder / f"{record.id}.json"), record_files.to_data(record))


def test_record_is_read_as_it_was_written() -> None:
    record = full_record()
    assert everything(stored_again(record)) == everything(record)


@pytest.mark.parametrize(
    "odd",
    ["", "\ud800", "a\x00b", "line\nline\r\n", "\u2028 \x1b[31m", "\U0001f600" * 2000],
    ids=["empty", "surrogate", "nul", "lines", "control", "long"],
)
def test_odd_texts_are_read_as_they_were_written(odd: str) -> None:
    record = full_record()
    record.event = make_event("E" + odd, description=odd, resources=(odd, "vm1"), source=odd)
    record.approval_reason = record.steps[0].output = record.steps[0].hook = odd
    record.timeline[0] = record.timeline[0]._replace(detail=odd)
    record.sighting = EventRecord(7, 1, record.event, NOON).sighting
    again = stored_again(record)
    again.sighting = record.sighting
    assert everything(again) == everything(record)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=-5, minutes=-30))),
    ],
)
def test_times_are_read_as_they_were_written(moment: datetime) -> None:
    record = full_record()
    record.first_seen = record.gone_at = record.steps[0].started_at = moment
    again = stored_again(record)
    assert (again.first_seen, again.gone_at, again.steps[0].started_at) == (moment, moment, moment)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("timeline"),
        lambda data: data.update(event={"event_id": "x"}),
        lambda data: data["event"].update(event_type=5),
        lambda data: data.update(first_seen="2026-11-21T12:00:00"),
        lambda data: data.update(first_seen=None),
        lambda data: data.update(closed_at="yesterday"),
        lambda data: data.update(id="7"),
        lambda data: data.update(seen_started=1),
        lambda data: data.update(steps=None),
        lambda data: data["steps"][0].update(stage="dance"),
        lambda data: data["steps"][0].update(state="fine"),
        lambda data: data["steps"][0].update(cause="none"),
        lambda data: data["steps"][0].update(exit_status="0"),
        lambda data: data["timeline"].append(["2026-11-21T12:00:00Z"]),
    ],
)
def test_content_that_is_not_a_record_is_an_error(change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(json.dumps(record_files.to_data(full_record())))
    change(data)
    with pytest.raises(ValueError):
        record_files.from_data(data)


def test_history_is_newest_first_and_limited(tmp_path: Path) -> None:
    write(tmp_path, HISTORY, make_record(9), make_record(10))
    write(tmp_path, OPEN, make_record(11))
    (tmp_path / HISTORY / "notes.txt").write_text("of an administrator")
    assert [data["id"] for data in record_files.stored(str(tmp_path)).records] == [11, 10, 9]
    assert [data["id"] for data in record_files.stored(str(tmp_path), 2).records] == [11, 10]


def test_history_leaves_out_and_names_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, HISTORY, make_record(9), make_record(10))
    (tmp_path / HISTORY / "9.json").write_text('{"version": 1, "id"')
    found = record_files.stored(str(tmp_path))
    assert [data["id"] for data in found.records] == [10]
    (sentence,) = found.unreadable
    assert "record 9" in sentence and str(tmp_path) in sentence


def test_history_without_records_is_empty_and_without_a_directory_an_error(tmp_path: Path) -> None:
    assert record_files.stored(str(tmp_path)) == ([], [])
    with pytest.raises(FileNotFoundError):
        record_files.stored(str(tmp_path / "absent"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_history_is_closed_to_other_users(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    def work() -> None:
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        with pytest.raises(PermissionError):
            record_files.stored(str(tmp_path))

    assert in_child(work) == 0
