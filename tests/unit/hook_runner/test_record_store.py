# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's records on disk: kills, full disks, damaged files, other boots and other VMs."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment

from azure_scheduled_events.document import EventDocument
from hook_runner import record_files
from hook_runner.maintenance.record import Maintenance, Pause, Vm
from hook_runner.record_store import RecordStore
from hook_runner.records import OK
from support.daemon.child_processes import fill_up, on_small_disk
from support.daemon.daemon_process import PYTHONPATH
from support.daemon.killed_at_change import killed_before
from support.daemon.record_factory import NOON, after, make_event, make_maintenance, make_record
from support.daemon.small_disk import Disk
from support.repository import REPOSITORY

NOBODY = 65534
FULL = "No space left on device"
OPEN = "maintenance.json"
# recovers without the record in the directory of its argument
IN_SANDBOX = """
import sys
from hook_runner.clock import wall_clock
from hook_runner.record_store import RecordStore
store = RecordStore(sys.argv[1], "one", print)
store.load()
store.records.opened(wall_clock())
assert store.write(), store.records.error
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def start(directory: Path, boot: str = "one", now: datetime = NOON, said: list[str] | None = None) -> RecordStore:
    """Return the store of a process."""
    store = RecordStore(str(directory), boot, (said if said is not None else []).append, lambda: now)
    store.load()
    return store


def save(store: RecordStore, name: str = "") -> Maintenance:
    """Write an open maintenance with a hook that runs, and a VM."""
    maintenance = make_maintenance(store.records.next_number())
    store.records.number_used(maintenance.last_number)
    store.records.maintenance, store.records.has_changed = maintenance, True
    if name:
        store.records.state.vm = Vm(name, "", "one")
    store.write()
    return maintenance


def add_event(store: RecordStore) -> None:
    """Add an event to the open maintenance, and write it."""
    assert store.records.maintenance is not None
    store.records.maintenance.events.append(make_record(store.records.next_number(), "E-2"))
    store.records.has_changed = True
    store.write()


def close(store: RecordStore, maintenance: Maintenance) -> None:
    store.records.close(maintenance, after(61))
    store.write()


def recover_without_a_record(store: RecordStore) -> None:
    """Begin a maintenance in place of one that cannot be read, as the state machine does."""
    store.records.opened(NOON).may_lack_events = True
    store.write()


def content(directory: Path) -> list[Maintenance]:
    """Return the maintenances on disk, newest first."""
    found = record_files.stored(str(directory))
    assert found.unreadable == {}
    return found.maintenances


def markers(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name == "clean" or path.name.startswith("stale"))


def test_next_process_has_everything_and_other_users_nothing(directory: Path) -> None:
    store = start(directory)
    for at, events in ((0, ("E-1", "E-2", "E-3")), (1, ("E-1",)), (4, ("E-1",)), (5, ("E-1", "E-3"))):
        document = EventDocument(None, tuple(map(make_event, events)), (), True, NOON, (), sent_at=at, sent_by=at)
        store.tracker.observe(document)
    store.records.state.pause = Pause(NOON, after(60), "root", "")
    store.records.state.observed["e-3"] = make_record(0, "E-3")
    maintenance = save(store, "vm1")
    again = start(directory)
    assert (again.records.state, again.records.maintenance) == (store.records.state, maintenance)
    assert again.records.state.vm == Vm("vm1", "", "one")
    assert (again.tracker.gone, again.tracker.returned) == (("e-2",), frozenset({"e-3"}))
    assert again.last_number == maintenance.last_number
    assert again.records.is_durable and not again.is_incomplete
    assert (again.set_aside(), markers(directory)) == ([], ["clean"])
    for path in (directory, *directory.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_closed_maintenance_is_in_the_history_only_and_the_newest_ones_are_kept(directory: Path) -> None:
    store = start(directory)
    closed = []
    for _number in range(4):
        closed.append(save(store))
        close(store, closed[-1])
    opened = save(store)
    assert len(list((directory / "history").iterdir())) == 4 and content(directory) == [opened, *closed[::-1]]
    store.prune(2)
    assert content(directory) == [opened, closed[3], closed[2]]
    assert start(directory).last_number == opened.last_number


@pytest.mark.parametrize("lost", [False, True])
def test_numbers_are_never_used_again(directory: Path, lost: bool) -> None:
    store = start(directory)
    used = save(store).last_number
    close(store, store.records.opened(NOON))
    if lost:
        shutil.rmtree(directory)
    assert start(directory, now=after(1 if lost else -1e8)).records.next_number() > used


def killed_at_each_change(
    folder: Path, work: Callable[[Path], object], before: Callable[[Path], object] = lambda directory: None
) -> Iterator[tuple[str, Path]]:
    """Yield a directory for each change at which the work was cut, with its name, and one for all of it with ""."""
    for number in range(1, 60):
        directory = folder / str(number) / "state"
        directory.parent.mkdir()
        before(directory)
        name = killed_before(number, None, directory.parent, partial(work, directory))
        yield name, directory
        if not name:
            return
    raise AssertionError("there is no end of changes")


def test_kill_at_each_change_leaves_a_state_of_the_maintenance(tmp_path: Path) -> None:
    def work(directory: Path) -> None:
        store = start(directory)
        maintenance = save(store)
        maintenance.runs[0].state, store.records.has_changed = OK, True
        assert store.write()
        close(store, maintenance)

    reached, names = [], set()
    for name, directory in killed_at_each_change(tmp_path, work):
        store = start(directory)
        assert not store.is_incomplete and store.write() and store.set_aside() == []
        found = content(directory) if directory.exists() else []
        reached.append([(each.runs[0].state, each.ended is not None) for each in found])
        assert (store.records.maintenance is not None) == (found != [] and found[0].ended is None)
        names.add(name)
    states = [[], [("running", False)], [("ok", False)], [("ok", True)]]
    assert sorted(reached, key=states.index) == reached and [each for each in states if each not in reached] == []
    assert names >= {"", "make state", "make a draft", "write state/state.json", "write state/maintenance.json"}
    assert "write state/history/ID.json" in names


def test_kill_at_each_change_after_a_full_disk_loses_no_event(tmp_path: Path, disk: Disk) -> None:
    def work(directory: Path) -> None:
        store = start(directory)
        disk.fail()
        add_event(store)
        disk.heal()
        store.write()

    names = []
    for name, directory in killed_at_each_change(tmp_path, work, lambda directory: save(start(directory))):
        names.append(name)
        store = start(directory)
        assert store.records.maintenance is not None
        events = [record.event.event_id for record in store.records.maintenance.events]
        # before the marker is renamed, no hook of the second event has begun
        assert "write state/stale" not in names[:-1] or "E-2" in events or store.is_incomplete
    assert {"write state/stale", "write state/clean"} <= set(names) and "E-2" in events
    assert not store.is_incomplete and markers(directory) == ["clean"]


@pytest.mark.parametrize("damage", ["random", "link"])
def test_kill_at_each_change_while_a_record_is_set_aside_loses_no_recovery(tmp_path: Path, damage: str) -> None:
    damaged_files = {}

    def damaged(directory: Path) -> None:
        save(start(directory))
        DAMAGE[damage](directory / OPEN)
        damaged_files[directory] = (directory / OPEN).lstat().st_ino

    for name, directory in killed_at_each_change(
        tmp_path, lambda directory: recover_without_a_record(start(directory)), damaged
    ):
        store = start(directory)
        found = store.records.maintenance
        assert store.is_incomplete or (found is not None and found.may_lack_events), name
        recover_without_a_record(store)
        assert not start(directory).is_incomplete and markers(directory) == ["clean"], name
        assert [Path(path, OPEN).lstat().st_ino for path in store.set_aside()] == [damaged_files[directory]], name


def test_kill_at_each_change_while_another_vm_begins_leaves_it_no_record(tmp_path: Path) -> None:
    names = set()
    for name, directory in killed_at_each_change(
        tmp_path,
        lambda directory: start(directory, "two").begin_anew("the records are those of vm1"),
        lambda directory: save(start(directory), "vm1"),
    ):
        names.add(name)
        store = start(directory, "two")
        # else the next process notices it again
        assert store.records.maintenance is None or store.records.state.vm.name == "vm1", name
    assert names >= {f"write state/set-aside/IDTIDZ/{each}" for each in (OPEN, "history", "state.json")}


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
    "cut": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "random": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "deep": lambda path: path.write_text("[" * 100_000),
    "list": lambda path: path.write_text("[]"),
    "later version": lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2})),
    "nothing else": lambda path: path.write_text('{"version": 1}'),
    "link": replace_by_link,
    "pipe": replace_by_pipe,
    "folder": replace_by_folder,
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_maintenance_that_cannot_be_used_is_kept_and_recovered(directory: Path, damage: str) -> None:
    save(start(directory))
    path = directory / OPEN
    DAMAGE[damage](path)
    before = path.lstat()
    said: list[str] = []
    again = start(directory, said=said)
    assert again.is_incomplete and again.records.maintenance is None
    assert str(path) in said[0] and "cannot be used" in said[0]
    recover_without_a_record(again)
    (aside,) = again.set_aside()
    kept = Path(aside, OPEN).lstat()
    assert (kept.st_ino, kept.st_size) == (before.st_ino, before.st_size) and path.lstat().st_ino != before.st_ino
    third = start(directory)
    assert not third.is_incomplete and third.records.maintenance == again.records.maintenance
    assert third.set_aside() == [aside] and markers(directory) == ["clean"]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give files away")
def test_maintenance_of_another_user_is_set_aside_without_privileges(directory: Path) -> None:
    save(start(directory))
    os.chown(directory / OPEN, NOBODY, -1)
    said: list[str] = []
    assert start(directory, said=said).is_incomplete and f"belongs to user {NOBODY}" in said[0]
    # as in the sandbox of the unit
    sandbox = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", IN_SANDBOX, str(directory)]
    subprocess.run(sandbox, env={**os.environ, "PYTHONPATH": PYTHONPATH}, check=True)
    again = start(directory)
    assert not again.is_incomplete and again.records.maintenance is not None
    assert [os.listdir(path) for path in again.set_aside()] == [[OPEN]]


@pytest.mark.parametrize("damage", ["empty", "later version", "nothing else", "link"])
def test_damaged_state_costs_the_state_only(directory: Path, damage: str) -> None:
    maintenance = save(start(directory), "vm1")
    DAMAGE[damage](directory / "state.json")
    again = start(directory)
    assert (again.records.state.vm, again.is_incomplete, again.records.maintenance) == (Vm(), False, maintenance)
    assert again.write() and os.listdir(again.set_aside()[0]) == ["state.json"]


def test_history_that_is_not_a_folder_is_set_aside(directory: Path) -> None:
    maintenance = save(start(directory))
    (directory / "history").rmdir()
    (directory / "history").write_text("a file where the folder should be")
    again = start(directory)
    assert again.write() and content(directory) == [maintenance] and (directory / "history").is_dir()
    assert Path(again.set_aside()[0], "history").read_text() == "a file where the folder should be"


def test_full_disk_keeps_everything_in_memory_until_there_is_room(directory: Path, disk: Disk) -> None:
    said: list[str] = []
    store = start(directory, said=said)
    maintenance = save(store)
    disk.fail()
    add_event(store)
    assert not store.write() and store.records.error is not None
    assert FULL in store.records.error and str(directory) in store.records.error
    assert store.records.failing_since == NOON and markers(directory) == ["stale"] and len(said) == 1
    disk.heal()
    assert store.write() and store.records.is_durable and store.records.failing_since is None
    assert markers(directory) == ["clean"] and content(directory) == [maintenance] and len(said) == 2


@pytest.mark.parametrize("is_first", [False, True])
def test_process_on_a_full_disk_is_noticed_by_the_next_one(directory: Path, disk: Disk, is_first: bool) -> None:
    if not is_first:
        save(start(directory))
    disk.fail()
    save(start(directory))
    # it stays full during another start
    start(directory).write()
    disk.heal()
    again = start(directory)
    assert again.is_incomplete and (again.records.maintenance is None) == is_first
    assert again.write() and not start(directory).is_incomplete


def test_role_finds_an_open_maintenance_also_if_a_full_disk_has_not_taken_it(directory: Path, disk: Disk) -> None:
    (task,) = yaml.safe_load((REPOSITORY / "roles/hook_runner/tasks/open_records.yml").read_text(encoding="utf-8"))
    words = task["ansible.builtin.command"]["argv"]
    command = [word.replace("{{ hook_runner__records_folder }}", str(directory)) for word in words]
    has_failed = Environment().compile_expression(task["failed_when"])

    def found(program: str = "find") -> list[str]:
        ran = subprocess.run(["env", program, *command[1:]], capture_output=True, text=True, check=False)
        assert not has_failed(hook_runner__open={"rc": ran.returncode}), ran.stderr
        return [os.path.basename(line) for line in ran.stdout.splitlines()]

    assert found() == []
    with pytest.raises(AssertionError, match="No such file"):
        found("no-such-program")
    store = start(directory)
    assert store.write() and found() == []
    disk.fail()
    save(store)
    assert found() == ["stale"]
    disk.heal()
    assert store.write() and found() == ["maintenance.json"]


def test_read_only_disk_keeps_everything_in_memory_and_the_marker_its_name(directory: Path, disk: Disk) -> None:
    store = start(directory)
    save(store)
    disk.fail(errno.EROFS)
    add_event(store)
    assert store.records.error is not None and "Read-only" in store.records.error and markers(directory) == ["clean"]
    disk.heal()
    assert store.write() and content(directory) == [store.records.maintenance] and markers(directory) == ["clean"]


def test_start_on_a_full_file_system_reads_and_later_writes(tmp_path: Path) -> None:
    directory, filler = tmp_path / "disk" / "state", tmp_path / "disk" / "filler"

    def work() -> None:
        maintenance = save(start(directory))
        fill_up(filler)
        store = start(directory)
        assert store.records.maintenance == maintenance
        close(store, store.records.maintenance)
        assert store.records.error is not None and FULL in store.records.error and markers(directory) == ["stale"]
        filler.unlink()
        assert store.write() and content(directory)[0].ended and markers(directory) == ["clean"]

    on_small_disk(tmp_path / "disk", 1 << 18, work)


def test_store_works_in_memory_while_its_directory_cannot_be_created(directory: Path) -> None:
    save(start(directory), "vm1")
    moved = directory.rename(directory.with_name("moved"))
    directory.write_text("a file where the directory should be")
    store = start(directory)
    maintenance = save(store)
    assert not store.records.is_durable
    directory.unlink()
    moved.rename(directory)
    assert store.write() and content(directory) == [maintenance]
    assert {"maintenance.json", "state.json"} <= {path.name for path in (directory / "set-aside").rglob("*")}


@pytest.mark.parametrize("removed", ["", "history"])
def test_folder_that_was_removed_is_made_again(directory: Path, removed: str) -> None:
    store = start(directory)
    save(store, "vm1")
    shutil.rmtree(directory / removed)
    add_event(store)
    again = start(directory)
    assert store.records.is_durable and again.records.maintenance == store.records.maintenance
    assert again.records.state.vm.name == "vm1"


def test_records_of_another_vm_that_cannot_be_moved_are_not_overwritten(directory: Path) -> None:
    theirs = save(start(directory), "vm1")
    copy = start(directory, "two")
    (directory / "set-aside").write_text("")
    copy.begin_anew("the records are those of vm1")
    mine = save(copy)
    assert not copy.records.is_durable and content(directory) == [theirs]
    assert record_files.stored(str(directory)).state.vm.name == "vm1"
    (directory / "set-aside").unlink()
    assert copy.write() and content(directory) == [mine]
