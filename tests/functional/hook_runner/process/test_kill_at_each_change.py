# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""kill -9 or a reboot before each write and effect of the daemon: no work is repeated or skipped."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hook_runner import record_files
from hook_runner.maintenance.record import Maintenance
from support.daemon.killed_at_change import APPROVE, REMOVE, START, killed_before
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

# a life has fewer changes than this
MOST = 200
RECORD, STATE, CLOSE = "write state/maintenance.json", "write state/state.json", "write state/history/ID.json"
# changes after which another process finds something else than before
WRITES = {RECORD, STATE, CLOSE}
COMMITS = {*WRITES, START, REMOVE, APPROVE}
# the rest prepares or completes them
STEPS = {
    *("make state", "make history", "make state/clean", "make a draft"),
    *("make run", "make run/runs", "make run/runs/ID.input", "make run/runs/ID.environment", "make run/runs/ID.memo"),
    *("remove a file of a run", "ask systemd", "read the output"),
}


class Life:
    """One maintenance for one event, which the daemon's process does not survive."""

    def __init__(self, folder: Path, azure: Azure) -> None:
        folder.mkdir()
        self.azure = azure
        self.harness = RunnerHarness(folder, azure)
        for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a"):
            self.harness.hook(hook, ":")
        self.event = azure.schedule("Reboot", notice=120, started_for=60)

    def go_on(self, how: str) -> Maintenance:
        """The next process, until all is done."""
        if how == "reboot":
            self.harness.end_processes()
            self.harness.systemd.forget()
            self.harness.boot_number += 1
            for path in sorted(self.harness.folder.glob("run/**/*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        self.live()
        assert self.harness.runner.records.maintenance is None
        assert not (self.harness.folder / "state/maintenance.json").exists()
        stored = record_files.stored(self.harness.store.directory)
        assert stored.unreadable == {}
        (maintenance,) = stored.maintenances
        return maintenance

    def count(self, what: str) -> dict[str, int]:
        """How often each hook has made that mark."""
        return collections.Counter(mark.hook for mark in self.harness.marks(what))

    def live(self) -> None:
        """Poll until the event is over and the host has recovered."""
        for after in (0, 1, 1, 120, 61, 1):
            self.harness.poll(after=after)


def lives(folder: Path, azure: Azure, how: str, kinds: set[str] | None) -> Iterator[tuple[Life, Maintenance]]:
    """A life for each change of these kinds, or of all, before which it is cut, and its record in the end."""
    found = []
    for number in range(1, MOST):
        life = Life(folder / str(number), azure)
        found.append(killed_before(number, kinds, life.harness.folder, life.live))
        try:
            yield life, life.go_on(how)
        finally:
            life.harness.close()
        azure.complete(life.event) if azure.status(life.event) != "Gone" else None
        if not found[-1]:
            print(f"{number - 1} kills:", dict(collections.Counter(found[:-1])))
            # lives differ in how often they ask systemd: not each change has its turn among all of them
            assert set(kinds or STEPS) <= set(found[:-1]) <= COMMITS | STEPS
            if kinds is not None:
                # what each effect relies on is written before it
                for effect in (START, REMOVE, APPROVE):
                    among = [each for each in found if each == effect or each in WRITES]
                    assert {before for before, after in pairwise(among) if after == effect} <= {STATE}
            return
    raise AssertionError("there is no end of changes")


@pytest.mark.parametrize("kinds", [COMMITS, pytest.param(None, marks=pytest.mark.all)], ids=["commits", "all"])
def test_kill_9_at_each_change(azure: Azure, tmp_path: Path, kinds: set[str] | None) -> None:
    for life, maintenance in lives(tmp_path, azure, "kill", kinds):
        once = {"prepare/10-a": 1, "prepare/20-b": 1, "recover/10-a": 1}
        assert life.count("begin") == life.count("end") == once, maintenance.runs
        check_approval(azure, life, maintenance)
        check_timeline(maintenance)


@pytest.mark.all
def test_the_end_of_the_host_at_each_change(azure: Azure, tmp_path: Path) -> None:
    for life, maintenance in lives(tmp_path, azure, "reboot", COMMITS):
        begun, ended = life.count("begin"), life.count("end")
        for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a"):
            states = [run.state for run in maintenance.runs if run.title == hook]
            # run again where the run before was interrupted, or did not persist
            assert states[-1] == "ok" and set(states) <= {"ok", "interrupted"}, (hook, states)
            assert 1 <= ended[hook] <= begun[hook] <= len(states), hook
        check_approval(azure, life, maintenance)
        check_timeline(maintenance)


def check_approval(azure: Azure, life: Life, maintenance: Maintenance) -> None:
    (event,) = maintenance.events
    sent = [event_id for _vm, event_id in azure.approvals() if event_id == life.event]
    # a second one only if the process died before it recorded the answer to the first
    assert 1 <= len(sent) <= 2 and azure.starts(life.event) == 1
    assert event.approval in ("accepted", "sent")


def check_timeline(maintenance: Maintenance) -> None:
    words: Any = [entry.what for entry in maintenance.timeline]
    assert words.count("taken-up") == words.count("gone") == words.count("closed") == 1, words
    assert maintenance.ended is not None
