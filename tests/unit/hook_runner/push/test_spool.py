# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The spool's file: complete after each step, and replaceable at any time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.push.delivery_queue import Delivery
from hook_runner.push.reported_events import Reported
from hook_runner.push.spool import Content, Spool, Vm

EVENT = ScheduledEvent("A", "Freeze", "Scheduled", ("vm1",), "VirtualMachine", None, "", "Platform", None)
VM = Vm("vm1", "id-1")


def content(*numbers: int) -> Content:
    """A spool with an event for each number, and its delivery."""
    return Content(
        VM,
        {f"a{n}": Reported(EVENT._replace(event_id=f"A{n}"), n, None if n % 2 else 5.0) for n in numbers},
        {n: Delivery(n, f"id{n}", f"a{n}", float(n), b"{}") for n in numbers},
    )


class Made:
    """A spool with a clock of the test."""

    def __init__(self, folder: Path) -> None:
        self.now, self.path, self.said = 0.0, folder / "push.db", []
        self.spool = self.open()

    said: list[str]

    def open(self) -> Spool:
        return Spool(str(self.path), self.said.append, lambda: self.now, lambda: 0.0)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    made = Made(tmp_path)
    yield made
    made.spool.close()


def test_everything_is_read_back(made: Made) -> None:
    assert made.spool.load() == Content(None, {}, {})
    made.spool.write_all(content(1, 2, 3))
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert made.open().load() == content(1, 2, 3)


def test_a_step_writes_what_has_changed(made: Made) -> None:
    made.spool.write_all(content(1, 2))
    later = content(2, 3)
    made.spool.write(later, ["a1", "a3"], [1, 3])
    assert made.open().load() == later and made.said == []


@pytest.mark.parametrize("damage", [b"nothing of SQLite" * 500, b""])
def test_a_damaged_or_empty_file_is_replaced(made: Made, damage: bytes) -> None:
    made.path.write_bytes(damage)
    assert made.spool.load() == Content(None, {}, {})
    made.spool.write_all(content(1))
    assert made.open().load() == content(1)
    assert len(list(made.path.parent.glob("push.db.corrupt-*"))) == bool(damage) == len(made.said)


def test_a_file_of_a_later_version_is_kept_beside_a_new_one(made: Made) -> None:
    made.spool.write_all(content(1))
    with sqlite3.connect(made.path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    assert made.open().load() == Content(None, {}, {})
    assert list(made.path.parent.glob("push.db.version-7-*"))


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_was_taken_away_is_written_again_as_a_whole(made: Made, how: str) -> None:
    made.spool.write_all(content(1))
    made.path.unlink()
    if how == "replaced":
        sqlite3.connect(made.path).close()
        made.path.touch()
    made.spool.write(content(1, 2), ["a2"], [2])
    assert made.open().load() == content(1, 2) and made.spool.error == ""


def test_a_file_that_another_program_holds_is_written_later_as_a_whole(made: Made) -> None:
    made.spool.write_all(content(1))
    holder = sqlite3.connect(made.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert made.open().load() is None  # unknown, which is not the same as empty
    made.spool.write(content(1, 2), ["a2"], [2])
    assert "cannot be written" in made.spool.error and not made.spool.is_due()
    holder.close()
    made.spool.write(content(1, 2, 3), ["a3"], [3])
    assert made.spool.error  # not before the pause is over
    made.now = 5.0
    assert made.spool.is_due()
    made.spool.write(content(1, 2, 3))
    assert made.spool.error == "" and made.open().load() == content(1, 2, 3)
    assert made.said[-1].endswith("is written again, and is complete")


def test_a_file_damaged_while_it_is_open_is_replaced(made: Made) -> None:
    made.spool.write_all(content(1))
    with open(made.path, "r+b") as file:
        file.write(os.urandom(made.path.stat().st_size))
    made.spool.write(content(1, 2), ["a2"], [2])
    assert made.open().load() == content(1, 2)


@pytest.mark.parametrize(
    ("one", "other", "is_other"),
    [
        (Vm("vm1", ""), Vm("VM1", ""), False),
        (Vm("vm1", "x"), Vm("vm2", "X"), False),
        (Vm("vm1", "x"), Vm("vm1", "y"), True),
        (Vm("vm1", ""), Vm("vm2", "y"), True),
    ],
)
def test_a_vm_is_known_by_its_id_or_else_by_its_name(one: Vm, other: Vm, is_other: bool) -> None:
    assert one.is_other(other) is is_other
