# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's records on disk: kills, full disks, damaged files, other boots and other VMs."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hook_runner import record_files
from hook_runner.record_store import RecordStore
from hook_runner.records import OK, RUNNING, EventRecord
from support.daemon.child_processes import fill_up, in_child, on_small_disk
from support.daemon.killed_at_change import killed_before
from support.daemon.record_factory import NOON, add_step, after, close_record, end_step, everything, make_record
from support.daemon.small_disk import Disk

NOBODY = 65534
FULL = "No space left on device"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def start(directory: Path, boot: str = "one", now: datetime = NOON, said: list[str] | None = None) -> RecordStore:
    """The store of a process."""
    store = RecordStore(str(directory), boot, (said if said is not None else []).append, lambda: now)
    store.load()
    return store


def saved(store: RecordStore, event_id: str = "E-1", prepared: bool = True) -> EventRecord:
    """An open record with a hook that has succeeded."""
    record = make_record(store.next_id(), event_id)
    if prepared:
        end_step(record, add_step(record, store.next_id()))
    store.save(record)
    store.write()
    return record


def content(directory: Path) -> list[dict[str, Any]]:
    """The records on disk, newest first."""
    found = record_files.stored(str(directory))
    assert found.unreadable == []
    return [everything(record_files.from_data(data)) for data in found.records]


def unknown_events(store: RecordStore) -> list[EventRecord]:
    """The records that stand for events which may be missing."""
    return [record for record in store.open_records() if record.is_of_lost_records]


def markers(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name == "clean" or path.name.startswith("stale"))


def test_files_and_folders_are_closed_to_other_users(directory: Path) -> None:
    store = start(directory)
    saved(store)
    store.note("name", "vm1")
    assert store.write()
    for path in (directory, *directory.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert markers(directory) == ["clean"]


def test_next_process_has_records_and_values(directory: Path) -> None:
    store = start(directory)
    record = saved(store)
    store.note("name", "vm1")
    store.note("pause", {"by": "root"})
    store.write()
    again = start(directory)
    assert [everything(each) for each in again.open_records()] == [everything(record)]
    assert again.noted("name", str) == "vm1" and again.noted("pause", dict) == {"by": "root"}
    assert again.noted("name", dict) is None and again.noted("other", str) is None
    assert again.error is None and again.set_aside() == []


def test_closed_record_is_in_the_history_only(directory: Path) -> None:
    store = start(directory)
    record = saved(store)
    close_record(record)
    store.save(record)
    assert store.write() and store.open_records() == []
    assert os.listdir(directory / "open") == [] and os.listdir(directory / "history") == [f"{record.id}.json"]
    assert content(directory) == [everything(record)] and start(directory).open_records() == []


def test_only_the_newest_records_of_the_history_are_kept(directory: Path) -> None:
    store = start(directory)
    records = [saved(store, f"E-{number}") for number in range(5)]
    for record in records[1:]:
        close_record(record)
        store.save(record)
        store.prune(2)
    assert [each["id"] for each in content(directory)] == [records[4].id, records[3].id, records[0].id]


@pytest.mark.parametrize("lost", [False, True])
def test_numbers_are_never_used_again(directory: Path, lost: bool) -> None:
    store = start(directory)
    used = {store.next_id() for _number in range(3)} | {saved(store).steps[0].id}
    if lost:
        shutil.rmtree(directory)
        later = start(directory, now=after(1))
    else:
        later = start(directory, now=after(-1e8))
    assert later.next_id() > max(used)


def states_of_a_record() -> Iterator[EventRecord]:
    """One event from its appearance to its end, as it is at each write."""
    record = make_record(int(NOON.timestamp() * 1000))
    yield record
    step = add_step(record, record.id + 1)
    yield record
    end_step(record, step)
    yield record
    close_record(record)
    yield record


def killed_at_each_change(
    folder: Path, work: Callable[[Path], object], before: Callable[[Path], object] = lambda directory: None
) -> Iterator[tuple[str, Path]]:
    """A directory for each change at which the work was cut, with its name, and one for all of the work with ""."""
    for number in range(1, 60):
        directory = folder / str(number) / "state"
        directory.parent.mkdir()
        before(directory)
        name = killed_before(number, None, directory.parent, partial(work, directory))
        yield name, directory
        if not name:
            return
    raise AssertionError("there is no end of changes")


def test_kill_at_each_change_leaves_a_state_of_the_record(tmp_path: Path) -> None:
    def work(directory: Path) -> None:
        store = start(directory)
        for record in states_of_a_record():
            store.save(record)
            assert store.write()

    states = [[], *([everything(record)] for record in states_of_a_record())]
    reached, names = [], set()
    for name, directory in killed_at_each_change(tmp_path, work):
        store = start(directory)
        names.add(name)
        reached.append(states.index(content(directory)))
        assert store.error is None and unknown_events(store) == [] and store.set_aside() == []
        assert [everything(each) for each in store.open_records()] == (states[reached[-1]] if reached[-1] < 4 else [])
    assert reached == sorted(reached) and set(reached) == set(range(5))
    assert names == {
        "",
        *("make state", "make open", "make history", "make state/clean", "make a draft"),
        *("write state/state.json", "write state/open/ID.json", "write state/history/ID.json"),
    }


def test_kill_at_each_change_after_a_full_disk_loses_no_event(tmp_path: Path, disk: Disk) -> None:
    def work(directory: Path) -> None:
        store = start(directory)
        disk.fail()
        saved(store, "E-2")
        disk.heal()
        store.write()

    names = []
    for name, directory in killed_at_each_change(tmp_path, work, lambda directory: saved(start(directory))):
        names.append(name)
        store = start(directory)
        found = {record.event.event_id for record in store.open_records() if not record.is_of_lost_records}
        # before the marker is renamed, no hook of the second event has begun
        assert "write state/stale-one" not in names[:-1] or found == {"E-1", "E-2"} or unknown_events(store), name
        assert store.error is None and markers(directory) == ["clean"]
    assert {"write state/stale-one", "write state/clean"} <= set(names) and found == {"E-1", "E-2"}


def test_kill_at_each_change_while_a_record_is_set_aside_loses_no_recovery(tmp_path: Path) -> None:
    def damaged(directory: Path) -> None:
        start(directory)
        (directory / "open" / "5.json").write_text("damaged")

    names = set()
    for name, directory in killed_at_each_change(tmp_path, start, damaged):
        names.add(name)
        store = start(directory)
        assert len(unknown_events(store)) == 1 and markers(directory) == ["clean"], name
        assert [Path(path, "5.json").read_text() for path in store.set_aside()] == ["damaged"], name
    assert names >= {"make state/set-aside", "write state/set-aside/IDTIDZ/ID.json", "write state/open/ID.json"}


def test_kill_at_each_change_while_another_vm_begins_leaves_it_no_record(tmp_path: Path) -> None:
    def of_another_vm(directory: Path) -> None:
        store = start(directory)
        store.note("name", "vm1")
        saved(store)

    def begin(directory: Path) -> None:
        start(directory, "two").begin_anew("the records are those of vm1")

    names = set()
    for name, directory in killed_at_each_change(tmp_path, begin, of_another_vm):
        names.add(name)
        store = start(directory, "two")
        theirs = [record for record in store.open_records() if not record.is_of_lost_records]
        # else the next process notices it again
        assert theirs == [] or store.noted("name", str) == "vm1", name
    assert names >= {f"write state/set-aside/IDTIDZ/{each}" for each in ("open", "history", "state.json")}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def make_later_version(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))


def replace_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "random": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "deep": lambda path: path.write_text("[" * 100_000),
    "list": lambda path: path.write_text("[]"),
    "later version": make_later_version,
    "no record": lambda path: path.write_text('{"version": 1}'),
    "number of another record": lambda path: path.write_text(path.read_text().replace('"id": ', '"id": 1')),
    "link": replace_by_link,
    "pipe": replace_by_pipe,
    "folder": replace_by_folder,
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_record_that_cannot_be_used_is_kept_and_its_event_is_recovered(directory: Path, damage: str) -> None:
    store = start(directory)
    broken, good = saved(store), saved(store, "E-2")
    path = directory / "open" / f"{broken.id}.json"
    DAMAGE[damage](path)
    before = path.lstat()
    said: list[str] = []
    again = start(directory, said=said)
    (unknown,) = unknown_events(again)
    assert unknown.affects_this_vm and unknown.gone_at is None and unknown.steps == []
    assert everything(again.open_records()[0]) == everything(good) and again.error is None
    assert str(path) in said[0] and "cannot be used" in said[0]
    (aside,) = again.set_aside()
    kept = Path(aside, path.name).lstat()
    assert (kept.st_ino, kept.st_size) == (before.st_ino, before.st_size) and not os.path.lexists(path)
    third = start(directory)
    assert len(unknown_events(third)) == 1 and third.set_aside() == [aside] and markers(directory) == ["clean"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_record_of_another_user_is_not_trusted(directory: Path) -> None:
    record = saved(start(directory))
    os.chown(directory / "open" / f"{record.id}.json", NOBODY, -1)
    said: list[str] = []
    again = start(directory, said=said)
    assert again.open_records() == unknown_events(again) != [] and f"belongs to user {NOBODY}" in said[0]


def test_folder_that_cannot_be_used_is_kept_and_all_is_recovered(directory: Path) -> None:
    saved(start(directory))
    (directory / "open").rename(directory / "away")
    (directory / "open").write_text("a file where the folder should be")
    again = start(directory)
    assert again.error is None and len(unknown_events(again)) == 1
    assert Path(again.set_aside()[0], "open").read_text() == "a file where the folder should be"


def test_process_killed_after_it_set_a_record_aside_does_not_lose_the_recovery(directory: Path, disk: Disk) -> None:
    record = saved(start(directory))
    cut(directory / "open" / f"{record.id}.json")
    disk.fail()
    start(directory)
    disk.heal()
    again = start(directory)
    assert len(unknown_events(again)) == 1 and again.error is None and len(again.set_aside()) == 1


@pytest.mark.parametrize("damage", ["empty", "later version", "link"])
def test_damaged_state_costs_the_values_only(directory: Path, damage: str) -> None:
    store = start(directory)
    record = saved(store)
    store.note("name", "vm1")
    store.write()
    DAMAGE[damage](directory / "state.json")
    again = start(directory)
    assert again.noted("name", str) is None and again.error is None and unknown_events(again) == []
    assert [everything(each) for each in again.open_records()] == [everything(record)]
    assert os.listdir(again.set_aside()[0]) == ["state.json"]


def test_full_disk_keeps_everything_in_memory_until_there_is_room(directory: Path, disk: Disk) -> None:
    said: list[str] = []
    store = start(directory, said=said)
    record = saved(store, prepared=False)
    disk.fail()
    end_step(record, add_step(record, store.next_id()))
    store.save(record)
    assert not store.write() and not store.write()
    assert store.error is not None and FULL in store.error and str(directory) in store.error
    assert store.failing_since == NOON and markers(directory) == ["stale-one"] and len(said) == 1
    disk.heal()
    assert store.write() and store.error is None and store.failing_since is None
    assert markers(directory) == ["clean"] and content(directory) == [everything(record)] and len(said) == 2


def test_marker_of_this_boot_means_that_events_may_be_missing(directory: Path, disk: Disk) -> None:
    store = start(directory)
    record = saved(store)
    disk.fail()
    saved(store, "E-2")
    disk.heal()
    again = start(directory)
    assert len(unknown_events(again)) == 1 and markers(directory) == ["clean"]
    assert everything(again.open_records()[0]) == everything(record)


@pytest.mark.parametrize("boots", [("one", "two"), ("", "")], ids=["another boot", "unknown boot"])
def test_marker_of_another_boot_means_that_no_success_counts(
    directory: Path, disk: Disk, boots: tuple[str, str]
) -> None:
    store = start(directory, boots[0])
    record = saved(store)
    running = add_step(record, store.next_id(), hook="20-db")
    store.save(record)
    store.write()
    disk.fail()
    saved(store, "E-2")
    # it stays full during another start
    start(directory, boots[1])
    disk.heal()
    again = start(directory, boots[1])
    first = again.open_records()[0]
    assert [(step.state, bool(step.void)) for step in first.steps] == [(OK, True), (RUNNING, False)]
    assert first.steps[1].id == running.id and len(unknown_events(again)) == 1
    assert start(directory, boots[1]).open_records()[0].steps[0].void and markers(directory) == ["clean"]


def test_process_killed_before_it_renames_the_marker_adds_no_second_record(directory: Path, disk: Disk) -> None:
    start(directory)
    disk.fail()
    saved(start(directory))
    disk.heal()
    first = unknown_events(start(directory))
    (directory / "clean").rename(directory / "stale-one")
    second = unknown_events(start(directory))
    assert len(first) == 1 and [everything(record) for record in second] == [everything(record) for record in first]


def test_event_of_an_unreadable_type_does_not_stand_for_lost_records(directory: Path) -> None:
    store = start(directory)
    store.save(make_record(store.next_id(), event_type="", status=""))
    store.write()
    again = start(directory)
    assert len(again.open_records()) == 1 and unknown_events(again) == []


def test_read_only_disk_keeps_everything_in_memory_and_the_marker_its_name(directory: Path, disk: Disk) -> None:
    store = start(directory)
    disk.fail(errno.EROFS)
    record = saved(store)
    assert store.error is not None and "Read-only" in store.error and record in store.open_records()
    assert markers(directory) == ["clean"]
    disk.heal()
    assert store.write() and content(directory) == [everything(record)] and markers(directory) == ["clean"]


def test_marker_without_a_record_leads_to_a_recovery(directory: Path, disk: Disk) -> None:
    store = start(directory)
    disk.fail()
    saved(store)
    disk.heal()
    again = start(directory, "two")
    assert again.open_records() == unknown_events(again) != []


def test_first_start_on_a_full_disk_is_noticed_by_the_next_boot(directory: Path, disk: Disk) -> None:
    disk.fail()
    store = start(directory)
    assert saved(store) in store.open_records() and store.error is not None
    disk.heal()
    assert len(unknown_events(start(directory, "two"))) == 1


def test_start_on_a_full_file_system_reads_and_later_writes(tmp_path: Path) -> None:
    directory, filler = tmp_path / "disk" / "state", tmp_path / "disk" / "filler"
    (tmp_path / "disk").mkdir()

    def work() -> None:
        record = saved(start(directory))
        fill_up(str(filler))
        store = start(directory)
        assert [everything(each) for each in store.open_records()] == [everything(record)]
        close_record(record)
        store.save(record)
        assert not store.write() and store.error is not None and FULL in store.error
        assert markers(directory) == ["stale-one"]
        filler.unlink()
        assert store.write() and content(directory) == [everything(record)] and markers(directory) == ["clean"]

    if (status := on_small_disk(str(tmp_path / "disk"), 1 << 18, work)) == 77:
        pytest.skip("to mount a file system needs root")
    assert status == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_directory_that_cannot_be_written_is_read(directory: Path) -> None:
    record = saved(start(directory))
    for path in (directory, *directory.rglob("*"), *directory.parents):
        if path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)

    def work() -> None:
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        store = start(directory)
        assert [everything(each) for each in store.open_records()] == [everything(record)]
        assert store.error is not None and "Permission denied" in store.error

    assert in_child(work) == 0


def test_store_works_in_memory_while_its_directory_cannot_be_created(directory: Path) -> None:
    directory.write_text("a file where the directory should be")
    said: list[str] = []
    store = start(directory, said=said)
    record = saved(store)
    assert store.error is not None and record in store.open_records()
    directory.unlink()
    assert store.write() and everything(record) in content(directory)


@pytest.mark.parametrize("removed", ["", "open", "history"])
def test_folder_that_was_removed_gets_all_open_records_again(directory: Path, removed: str) -> None:
    store = start(directory)
    store.note("name", "vm1")
    records = [saved(store, f"E-{number}") for number in range(3)]
    shutil.rmtree(directory / removed)
    store.save(records[1])
    assert store.write() and store.error is None
    again = start(directory)
    assert [everything(each) for each in again.open_records()] == [everything(each) for each in records]
    assert again.noted("name", str) == "vm1" and unknown_events(again) == []


def test_records_of_another_vm_are_kept_and_forgotten(directory: Path) -> None:
    store = start(directory)
    mine = [saved(store, f"E-{number}") for number in range(2)]
    close_record(mine[1])
    store.save(mine[1])
    store.note("name", "vm1")
    store.write()
    copy = start(directory, "two")
    copy.begin_anew("the records are those of vm1")
    assert copy.open_records() == [] and copy.noted("name", str) is None and copy.error is None
    assert content(directory) == [] and start(directory, "two").open_records() == []
    (aside,) = copy.set_aside()
    assert content(Path(aside)) == [everything(mine[1]), everything(mine[0])]
    assert json.loads(Path(aside, "state.json").read_text())["name"] == "vm1"


def test_records_of_another_vm_that_cannot_be_moved_are_not_overwritten(directory: Path) -> None:
    store = start(directory)
    theirs = saved(store)
    store.note("name", "vm1")
    store.write()
    copy = start(directory, "two")
    (directory / "set-aside").write_text("")
    copy.begin_anew("the records are those of vm1")
    mine = saved(copy, "E-2")
    assert copy.error is not None and content(directory) == [everything(theirs)]
    assert json.loads((directory / "state.json").read_text())["name"] == "vm1"
    (directory / "set-aside").unlink()
    assert copy.write() and content(directory) == [everything(mine)]
