# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The engine's file: restarts, damage, and failed writes."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
from pathlib import Path

import pytest

from azure_events_engine.answers import tracked_event
from azure_events_engine.state import Approval, Hold, Maintenance, Member
from azure_events_engine.store import Store, StoreError
from azure_scheduled_events.tracking import Sighting

EVENT = tracked_event("A1", "Reboot", "Scheduled", ("vm1", "vm2"))
LISTED = Member(Sighting(EVENT, True, frozenset(("vm1", "vm2")), True), record="prepared", job=7)
RECORDED = Member(record="prepared")
MAINTENANCE = Maintenance(
    "A1",
    "Reboot",
    members={"m1": LISTED, "m2": RECORDED},
    approval=Approval("m1", "engine", "", outcome="approved", job=3),
    hold=Hold("alice", "2026-11-22T10:00:00Z"),
    announced=frozenset(("draining", "approved")),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "azure_events" / "engine.sqlite"


def written(path: Path) -> Store:
    store = Store(str(path))
    assert store.load(0.0) == ({}, {}, "")
    store.save({"a1": MAINTENANCE}, {"m1": "vm1"})
    return store


def test_maintenances_survive_a_restart(path: Path) -> None:
    written(path)
    maintenances, names, problem = Store(str(path)).load(100.0)
    restored = maintenances["a1"]
    assert (names, problem) == ({"m1": "vm1"}, "")
    assert (
        restored.approval is not None and restored.approval.outcome == "approved" and restored.hold == MAINTENANCE.hold
    )
    assert restored.announced == MAINTENANCE.announced and not restored.is_over


def test_preparation_counts_once_the_minion_reports_it_again(path: Path) -> None:
    written(path)
    members = Store(str(path)).load(100.0).maintenances["a1"].members
    assert (members["m1"].resources, members["m1"].record, members["m1"].job) == (("vm1", "vm2"), "", 0)
    assert (members["m2"].present, members["m2"].record) == (False, "prepared")


def test_file_and_folder_are_private(path: Path) -> None:
    written(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700


def test_removed_maintenance_is_not_loaded(path: Path) -> None:
    written(path).save({"a1": None}, {})
    assert Store(str(path)).load(0.0).maintenances == {}


def test_damaged_file_is_quarantined(path: Path) -> None:
    written(path).close()
    path.write_bytes(b"no database at all" * 100)
    store = Store(str(path))
    loaded = store.load(0.0)
    assert loaded.maintenances == {} and "is damaged" in loaded.problem
    assert path.with_name("engine.sqlite.damaged").exists()
    store.save({"a1": MAINTENANCE}, {})
    assert list(Store(str(path)).load(0.0).maintenances) == ["a1"]


def test_file_that_is_damaged_later_is_quarantined_at_the_next_write(path: Path) -> None:
    store = written(path)
    with sqlite3.connect(path) as other:
        # the store then reads the file again, of which the fourth page is that of names
        other.execute("DELETE FROM names")
    other.close()
    content = path.read_bytes()
    path.write_bytes(content[: 3 * 4096] + b"x" * 4096 + content[4 * 4096 :])
    with pytest.raises(StoreError, match="1 holds of operators could be read"):
        store.save({"b2": MAINTENANCE}, {"m1": "vm1"})
    assert path.with_name("engine.sqlite.damaged").exists()
    store.save({"b2": MAINTENANCE}, {})
    assert list(Store(str(path)).load(0.0).maintenances) == ["a1", "b2"]


def test_holds_are_rescued_from_a_damaged_file_once_the_disk_has_space(path: Path) -> None:
    store = written(path)
    store.save({"b2": MAINTENANCE._replace(event_id="B2", hold=None)}, {})
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE maintenances SET contents = '{' WHERE key = 'b2'")
    connection.close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(StoreError, match="cannot be replaced"):
            Store(str(path)).load(0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    loaded = Store(str(path)).load(0.0)
    assert list(loaded.maintenances) == ["a1"] and loaded.maintenances["a1"].hold == MAINTENANCE.hold
    assert "1 holds of operators could be read" in loaded.problem


def test_file_of_another_version_is_quarantined(path: Path) -> None:
    written(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "is of version 99" in Store(str(path)).load(0.0).problem


def test_file_that_cannot_be_written_is_an_error(path: Path) -> None:
    store = written(path)
    store.close()
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError):
        store.save({"a1": MAINTENANCE}, {})


def test_full_disk_is_an_error_and_keeps_the_content(path: Path) -> None:
    store = written(path)
    connection = store.connection()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    large = MAINTENANCE._replace(withheld="x" * 100000)
    with pytest.raises(StoreError, match="full"):
        store.save({"b2": large}, {})
    assert list(Store(str(path)).load(0.0).maintenances) == ["a1"]
