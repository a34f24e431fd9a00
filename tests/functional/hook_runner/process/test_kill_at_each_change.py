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

from hook_runner.records import EventRecord
from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import FAILS
from support.daemon.killed_at_change import APPROVE, REMOVE, START, killed_before
from support.daemon.simulated_azure import Azure

# a life has fewer changes than this
MOST = 200
RECORD = "write state/open/ID.json"
# changes after which another process finds something else than before
COMMITS = {RECORD, "write state/state.json", "write state/history/ID.json", START, REMOVE, APPROVE}
# the rest prepares or completes them
STEPS = {
    *("make state", "make open", "make history", "make state/clean", "make a draft"),
    *("make run", "make run/runs", "make run/runs/ID.input", "make run/runs/ID.environment", "remove a file of a run"),
    *("ask systemd", "read the output"),
}


class Life:
    """One life of one event, which the daemon's process does not survive."""

    def __init__(self, folder: Path, azure: Azure, fails: bool) -> None:
        folder.mkdir()
        self.azure = azure
        self.harness = EngineHarness(folder, azure)
        for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a"):
            self.harness.hook(hook, FAILS if fails and hook == "prepare/20-b" else ":")
        self.event = azure.schedule("Reboot", notice=120, started_for=60)

    def until_it_dies(self, number: int, kinds: set[str] | None) -> str:
        """Live in a process that is killed before the change of this number; name it, or "" if there is none."""
        return killed_before(number, kinds, self.harness.folder, self._live)

    def go_on(self, how: str) -> EventRecord:
        """The next process, until all is done."""
        if how == "reboot":
            self.harness.end_processes()
            self.harness.systemd.forget()
            for path in sorted(self.harness.folder.glob("run/**/*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        self._live()
        assert self.harness.engine.records == [] and self.harness.store.open_records() == []
        (record,) = self.harness.stored()
        return record

    def count(self, what: str) -> dict[str, int]:
        """How often each hook has made that mark."""
        return collections.Counter(mark.hook for mark in self.harness.marks(what))

    def _live(self) -> None:
        for after in (0, 1, 1, 120, 61, 1):
            self.harness.poll(after=after)


def lives(
    folder: Path, azure: Azure, how: str, kinds: set[str] | None, fails: bool = False
) -> Iterator[tuple[Life, EventRecord]]:
    """A life for each change of these kinds, or of all, before which it is cut, and its record in the end."""
    found = []
    for number in range(1, MOST):
        life = Life(folder / str(number), azure, fails)
        found.append(life.until_it_dies(number, kinds))
        try:
            yield life, life.go_on(how)
        finally:
            life.harness.close()
        azure.complete(life.event) if azure.status(life.event) != "Gone" else None
        if not found[-1]:
            print(f"{number - 1} kills:", dict(collections.Counter(found[:-1])))
            assert set(found[:-1]) == (kinds or COMMITS | STEPS)
            if kinds is not None:
                # what each effect relies on is written before it; lives differ in how often they ask systemd
                assert {before for before, after in pairwise(found) if after in (START, REMOVE, APPROVE)} <= {RECORD}
            return
    raise AssertionError("there is no end of changes")


@pytest.mark.parametrize("kinds", [COMMITS, pytest.param(None, marks=pytest.mark.all)], ids=["commits", "all"])
def test_kill_9_at_each_change(azure: Azure, tmp_path: Path, kinds: set[str] | None) -> None:
    for life, record in lives(tmp_path, azure, "kill", kinds):
        once = {"prepare/10-a": 1, "prepare/20-b": 1, "recover/10-a": 1}
        assert life.count("begin") == life.count("end") == once, record.steps
        check_approval(azure, life, record)
        check_timeline(record)


@pytest.mark.all
def test_the_end_of_the_host_at_each_change(azure: Azure, tmp_path: Path) -> None:
    for life, record in lives(tmp_path, azure, "reboot", COMMITS):
        begun, ended = life.count("begin"), life.count("end")
        for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a"):
            states = [step.state for step in record.steps if f"{step.stage}/{step.hook}" == hook]
            # run again only where the record says that the run before was cut, or had not begun
            assert states in (["ok"], ["interrupted", "ok"], ["stopped", "ok"]), (hook, states)
            assert 1 <= ended[hook] <= begun[hook] <= len(states), hook
        check_approval(azure, life, record)
        check_timeline(record)


@pytest.mark.all
@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_a_failed_preparation_is_not_approved_whatever_dies(azure: Azure, tmp_path: Path, how: str) -> None:
    for life, record in lives(tmp_path, azure, how, COMMITS - {APPROVE}, fails=True):
        assert (life.azure.approvals(), record.approval) == ([], "")
        assert record.steps[-1].stage == "recover" and life.count("end")["recover/10-a"] >= 1
        *before, last = [step.state for step in record.steps if step.hook == "20-b"]
        assert last == "failed" and before in ([], ["interrupted"], ["stopped"])


def check_approval(azure: Azure, life: Life, record: EventRecord) -> None:
    sent = [event_id for _vm, event_id in azure.approvals() if event_id == life.event]
    # a second one only if the process died before it recorded the answer to the first
    assert 1 <= len(sent) <= 2 and azure.starts(life.event) == 1
    assert record.approval in ("accepted", "sent") and record.approval_attempts in (1, 2)


def check_timeline(record: EventRecord) -> None:
    words: Any = [entry.what for entry in record.timeline]
    assert words.count("appeared") == words.count("gone") == words.count("closed") == 1, words
    assert record.occurrence == 1 and record.closed_at is not None
