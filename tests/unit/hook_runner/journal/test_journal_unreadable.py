# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A journal that cannot be read for a while is not empty, and pending records are written when it can."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hook_runner.journal import database
from hook_runner.journal.journal import Journal
from hook_runner.journal.reader import JournalReader
from hook_runner.records import INTERRUPTED, EventRecord
from support.daemon.daemon_process import DaemonProcess
from support.daemon.hook_scripts import HANGS, is_alive
from support.daemon.record_factory import add_step, close_record, everything, make_record
from support.daemon.simulated_azure import Azure


class Disk:
    """Errors for every process that opens the journal while `is_broken`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_broken = False
        connect = database._connect

        def connect_or_not(*arguments: Any, **options: Any) -> sqlite3.Connection:
            if self.is_broken:
                raise sqlite3.OperationalError("disk I/O error")
            return connect(*arguments, **options)

        monkeypatch.setattr(database, "_connect", connect_or_not)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal.db")


def with_open_record(path: str) -> EventRecord:
    journal = Journal.open(path, print)
    record = make_record(journal.next_id())
    add_step(record, journal.next_id())
    assert journal.save(record)
    journal.close()
    return record


def read(path: str) -> list[EventRecord]:
    reader = JournalReader.open(path)
    found = reader.records(10)
    reader.close()
    return found


def test_file_that_was_read_or_is_new_is_known(path: str) -> None:
    for _time in range(2):
        journal = Journal.open(path, print)
        assert journal.is_known
        journal.close()


def test_missing_file_that_cannot_be_created_is_known(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    assert Journal.open(str(tmp_path / "state" / "journal.db"), print).is_known


def test_quarantined_file_is_known(path: str) -> None:
    Path(path).write_bytes(b"x" * 5000)
    assert Journal.open(path, print).is_known


def test_a_file_that_cannot_be_read_is_not_known_until_it_is_read(path: str, disk: Disk) -> None:
    record = with_open_record(path)
    disk.is_broken = True
    journal = Journal.open(path, print)
    assert not journal.is_known
    journal.reload()
    assert not journal.is_known
    disk.is_broken = False
    journal.reload()
    assert journal.is_known and [everything(each) for each in journal.open_records()] == [everything(record)]
    assert journal.take_late_records() == []
    journal.close()


def test_record_of_a_file_read_late_is_returned_once(path: str, disk: Disk) -> None:
    record = with_open_record(path)
    disk.is_broken = True
    journal = Journal.open(path, print)
    assert journal.open_records() == []
    disk.is_broken = False
    journal.reload()
    assert [everything(each) for each in journal.take_late_records()] == [everything(record)]
    assert journal.take_late_records() == []
    journal.close()


@pytest.mark.parametrize("closed", [False, True])
def test_open_record_of_the_file_is_superseded_by_that_in_memory(path: str, disk: Disk, closed: bool) -> None:
    record = with_open_record(path)
    disk.is_broken = True
    now = [0.0]
    journal = Journal.open(path, print, clock=lambda: now[0])
    assert journal.open_records() == []
    mine = make_record(journal.next_id())
    assert not journal.save(mine)
    if closed:
        close_record(mine)
        assert not journal.save(mine)
    disk.is_broken = False
    now[0] += 5
    assert journal.save(make_record(journal.next_id(), "other"))
    assert journal.take_late_records() == []
    journal.close()
    superseded = next(each for each in read(path) if each.id == record.id)
    assert superseded.closed_at is not None and superseded.timeline[-1].what == "superseded"
    assert [step.state for step in superseded.steps] == [INTERRUPTED]
    again = Journal.open(path, print)
    assert [each.id for each in again.open_records() if each.key == mine.key] == ([] if closed else [mine.id])
    again.close()


def test_close_writes_what_is_left_at_once(path: str) -> None:
    journal = Journal.open(path, print, clock=lambda: 0.0)
    os.rename(path, path + ".away")
    os.makedirs(path + "/not-empty")
    record = make_record(journal.next_id())
    assert not journal.save(record)
    os.removedirs(path + "/not-empty")
    os.rename(path + ".away", path)
    journal.close()
    assert [everything(each) for each in read(path)] == [everything(record)]


def test_closing_record_is_written_at_once(path: str) -> None:
    journal = Journal.open(path, print, clock=lambda: 0.0)
    record = make_record(journal.next_id())
    assert journal.save(record)
    os.rename(path, path + ".away")
    os.makedirs(path + "/not-empty")
    assert not journal.save(record)
    os.removedirs(path + "/not-empty")
    os.rename(path + ".away", path)
    assert not journal.save(record)  # not before the interval is over
    close_record(record)
    assert journal.save(record) and journal.write_error is None
    journal.close()


UNREADABLE = """
import os, sqlite3
from hook_runner.journal import database
from hook_runner.service import assembly, daemon
connect = database._connect
def connect_or_not(*arguments, **options):
    if os.path.exists(%r):
        raise sqlite3.OperationalError("disk I/O error")
    return connect(*arguments, **options)
database._connect = connect_or_not
assembly.JOURNAL_RETRY_INTERVAL, assembly.JOURNAL_TIMEOUT = 0.1, %r
"""


def test_the_start_waits_for_the_journal_and_goes_on_where_it_was(
    azure: Azure, make_daemon: Callable[..., DaemonProcess]
) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.start()
    vm.wait(lambda: vm.harness.marks("hang"))
    vm.stop()
    broken = vm.harness.folder / "broken"
    broken.touch()
    vm.start(first=UNREADABLE % (str(broken), 30.0), until="STATUS=waiting for the journal, which is not readable")
    assert is_alive(vm.harness.marks("hang")[0].pid)
    assert vm.stop() < 2
    vm.start(first=UNREADABLE % (str(broken), 30.0), until="")
    vm.wait(lambda: vm.seconds_since("STATUS=waiting for the journal, which is not readable") < 0.2)
    broken.unlink()
    vm.wait(lambda: vm.times_logged("prepare/10-a runs on from before the daemon's start"))
    vm.harness.release("prepare/10-a")
    vm.wait(azure.approvals)
    assert vm.harness.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_events_of_a_journal_read_after_the_start_are_recovered_once(
    azure: Azure, make_daemon: Callable[..., DaemonProcess]
) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a")
    vm.harness.hook("recover/10-a")
    event = azure.schedule("Reboot", hold=True)
    vm.start()
    vm.wait(azure.approvals)
    vm.stop()
    azure.cancel(event)
    broken = vm.harness.folder / "broken"
    broken.touch()
    vm.start(
        first=UNREADABLE % (str(broken), 0.3)
        + "from hook_runner.journal import journal; journal.REOPEN_INTERVAL = daemon.IDLE_INTERVAL = 0.5\n"
    )
    assert vm.times_logged("is not readable: hooks may run again") == 1 and vm.harness.ran() == ["prepare/10-a"]
    broken.unlink()
    vm.wait(lambda: vm.times_logged("closed: recovered"))
    vm.stop()
    vm.start()
    azure.schedule("Freeze", hold=True)
    vm.wait(lambda: len(vm.harness.ran("prepare")) == 2)
    assert vm.harness.ran("recover") == ["recover/10-a"]
