# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The newest record of an event, which may be opened again, and journals of another VM."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from hook_runner.journal.journal import Journal
from hook_runner.journal.reader import JournalReader
from hook_runner.records import TimelineEntry
from support.daemon.record_factory import (
    add_step,
    after,
    close_record,
    end_step,
    everything,
    last_occurrence,
    make_record,
)

NOON = 1795262400.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal.db")


def test_last_of_an_unknown_event_is_none(path: str) -> None:
    journal = Journal.open(path, print)
    journal.save(make_record(journal.next_id()))
    assert journal.last_of("e-2") is None
    journal.close()


@pytest.mark.parametrize("restarted", [False, True])
def test_last_of_returns_the_newest_record_open_or_closed(path: str, restarted: bool) -> None:
    journal = Journal.open(path, print)
    first, second, other = (make_record(journal.next_id(), name) for name in ("E-1", "E-1", "E-2"))
    second.occurrence = 2
    for record in (first, second):
        end_step(record, add_step(record, journal.next_id()))
        close_record(record)
        assert journal.save(record)
    assert journal.save(other)
    if restarted:
        journal.close()
        journal = Journal.open(path, print)
    for key, record in (("e-1", second), ("e-2", other)):
        found = journal.last_of(key)
        assert found is not None and everything(found) == everything(record)
    assert journal.last_of("e-2") in journal.open_records()  # the same object, which the engine changes
    journal.close()


def test_last_of_returns_a_record_that_is_only_in_memory(path: str) -> None:
    journal = Journal.open(path, print)
    record = make_record(journal.next_id())
    close_record(record)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert not journal.save(record) and journal.last_of("e-1") is record
    holder.close()
    journal.close()


def test_record_that_cannot_be_read_is_not_the_last_one_and_is_reported(path: str) -> None:
    said: list[str] = []
    journal = Journal.open(path, said.append)
    record = make_record(journal.next_id())
    close_record(record)
    journal.save(record)
    journal.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE records SET event = 'not JSON'")
    connection.commit()
    connection.close()
    journal = Journal.open(path, said.append)
    assert journal.last_of("e-1") is None and "cannot be read" in said[-1]
    journal.close()


def test_closed_record_that_is_opened_again_keeps_steps_and_timeline(path: str) -> None:
    journal = Journal.open(path, print)
    record = make_record(journal.next_id())
    end_step(record, add_step(record, journal.next_id()))
    close_record(record)
    assert journal.save(record)
    journal.prune(10)
    again = journal.last_of("e-1")
    assert again is not None
    again.closed_at = again.gone_at = None
    again.timeline.append(TimelineEntry(after(70), "back", "it is listed again"))
    assert journal.save(again) and journal.open_records() == [again]
    add_step(again, journal.next_id(), "recover")
    assert journal.save(again)
    journal.prune(0)
    before = everything(again)
    journal.close()
    reopened = Journal.open(path, print)
    assert [everything(each) for each in reopened.open_records()] == [before]
    assert [step.stage for step in reopened.open_records()[0].steps] == ["prepare", "recover"]
    reopened.close()


def test_journal_of_another_vm_is_kept_and_forgotten(path: str) -> None:
    said: list[str] = []
    journal = Journal.open(path, said.append, wall=lambda: NOON)
    record = make_record(journal.next_id())
    assert journal.save(record)
    journal.note("vm", "other")
    highest = journal.next_id()
    journal.set_aside("other-vm", "it is about the VM other")
    renamed = path + ".other-vm-20261121T120000Z"
    assert said == [
        f"the journal {path} cannot be used: it is about the VM other; it is kept as {renamed},"
        " and a new one begins with the records in memory"
    ]
    assert (
        journal.open_records() == []
        and journal.noted("vm") == ""
        and journal.last_of("e-1") is None
        and last_occurrence(journal, "e-1") == 0
    )
    assert journal.write_error is None and journal.is_known and journal.next_id() > highest
    journal.note("vm", "mine")
    assert journal.save(make_record(journal.next_id(), "mine"))
    journal.close()
    again = Journal.open(path, print)
    assert [each.event.event_id for each in again.open_records()] == ["mine"] and again.noted("vm") == "mine"
    again.close()
    kept = JournalReader.open(renamed)
    assert [everything(each) for each in kept.records(10)] == [everything(record)]
    kept.close()


def test_journal_of_another_vm_that_cannot_be_renamed_is_not_read_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    said: list[str] = []
    journal = Journal.open(path, said.append, clock=lambda: now[0], wall=lambda: NOON)
    assert journal.save(make_record(journal.next_id(), "foreign"))
    with monkeypatch.context() as readonly:

        def fail(*_names: str) -> None:
            raise OSError(30, "Read-only file system")

        readonly.setattr(os, "replace", fail)
        journal.set_aside("other-vm", "it is about the VM other")
        assert "Read-only" in (journal.write_error or "") and journal.is_known
        assert journal.open_records() == [] == journal.reader().records(10)
        now[0] += 5
        mine = make_record(journal.next_id(), "mine")
        assert not journal.save(mine)
    now[0] += 5
    assert journal.save(mine) and journal.write_error is None
    assert journal.open_records() == [mine] and journal.take_late_records() == []
    journal.close()
    assert os.path.exists(path + ".other-vm-20261121T120000Z")


def test_files_of_other_vms_do_not_fill_the_disk(path: str) -> None:
    journal = Journal.open(path, print, wall=lambda: NOON)
    for _time in range(9):
        journal.set_aside("other-vm", "it is about another VM")
    journal.close()
    assert len([name for name in os.listdir(os.path.dirname(path)) if ".other-vm-" in name]) == 5
