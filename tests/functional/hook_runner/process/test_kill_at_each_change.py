# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""kill -9 or a reboot before and after every change of the records on disk: no work is repeated or skipped."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hook_runner.records import EventRecord
from support.daemon.child_processes import die, in_child
from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import FAILS
from support.daemon.simulated_azure import Azure

SIGKILL = -9
# a life has fewer changes than this
MOST = 80


class Life:
    """One life of one event, which the daemon's process does not survive."""

    def __init__(self, folder: Path, azure: Azure, fails: bool) -> None:
        folder.mkdir()
        self.azure = azure
        self.harness = EngineHarness(folder, azure)
        for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a"):
            self.harness.hook(hook, FAILS if fails and hook == "prepare/20-b" else ":")
        self.event = azure.schedule("Reboot", notice=120, started_for=60)

    def until_it_dies(self, number: int, when: str) -> bool:
        """Live in a process that ends itself at the change of this number; return False if there is none."""
        status = in_child(lambda: self._die_at(number, when))
        assert status in (0, SIGKILL)
        return status == SIGKILL

    def go_on(self, how: str) -> EventRecord:
        """The next process, until all is done."""
        if how == "reboot":
            self.harness.end_processes()
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

    def _die_at(self, number: int, when: str) -> None:
        rename, count = os.replace, 0

        def deadly(source: str, target: str, **options: Any) -> None:
            """Each change of a file ends with a rename, from a draft or from another folder."""
            nonlocal count
            count += 1
            if (count, when) == (number, "before"):
                die()
            rename(source, target, **options)
            if (count, when) == (number, "after"):
                die()

        setattr(os, "replace", deadly)
        self._live()


def lives(folder: Path, azure: Azure, how: str, when: str, fails: bool = False) -> Iterator[tuple[Life, EventRecord]]:
    """A life for each change at which it can be cut, and its record in the end."""
    for number in range(1, MOST):
        life = Life(folder / str(number), azure, fails)
        was_cut = life.until_it_dies(number, when)
        try:
            yield life, life.go_on(how)
        finally:
            life.harness.close()
        azure.complete(life.event) if azure.status(life.event) != "Gone" else None
        if not was_cut:
            # the numbers before this one were all of them
            assert number > 10
            return
    raise AssertionError("there is no end of changes")


@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_9_at_each_change(azure: Azure, tmp_path: Path, when: str) -> None:
    for life, record in lives(tmp_path, azure, "kill", when):
        once = {"prepare/10-a": 1, "prepare/20-b": 1, "recover/10-a": 1}
        assert life.count("begin") == life.count("end") == once, record.steps
        check_approval(azure, life, record)
        check_timeline(record)


@pytest.mark.all
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_end_of_the_host_at_each_change(azure: Azure, tmp_path: Path, when: str) -> None:
    for life, record in lives(tmp_path, azure, "reboot", when):
        begun, ended = life.count("begin"), life.count("end")
        for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a"):
            states = [step.state for step in record.steps if f"{step.stage}/{step.hook}" == hook]
            # run again only where the record says that the run before was cut
            assert states in (["ok"], ["interrupted", "ok"]), (hook, states)
            assert 1 <= ended[hook] <= begun[hook] <= len(states), hook
        check_approval(azure, life, record)
        check_timeline(record)


@pytest.mark.all
@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_a_failed_preparation_is_not_approved_whatever_dies(azure: Azure, tmp_path: Path, how: str) -> None:
    for life, record in lives(tmp_path, azure, how, "before", fails=True):
        assert (life.azure.approvals(), record.approval) == ([], "")
        assert record.steps[-1].stage == "recover" and life.count("end")["recover/10-a"] >= 1
        assert [step.state for step in record.steps if step.hook == "20-b"] in (["failed"], ["interrupted", "failed"])


def check_approval(azure: Azure, life: Life, record: EventRecord) -> None:
    sent = [event_id for _vm, event_id in azure.approvals() if event_id == life.event]
    # a second one only if the process died before it recorded the answer to the first
    assert 1 <= len(sent) <= 2 and azure.starts(life.event) == 1
    assert record.approval in ("accepted", "sent") and record.approval_attempts in (1, 2)


def check_timeline(record: EventRecord) -> None:
    words: Any = [entry.what for entry in record.timeline]
    assert words.count("appeared") == words.count("gone") == words.count("closed") == 1, words
    assert record.occurrence == 1 and record.closed_at is not None
