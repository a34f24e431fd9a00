# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Whole lives of an event whose journal is damaged under the daemon, which is killed a moment later."""

from __future__ import annotations

import collections
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hook_runner.journal.journal import REOPEN_INTERVAL
from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS
from support.daemon.journal_damage import DAMAGE
from support.daemon.simulated_azure import Azure

pytestmark = pytest.mark.all

# seconds before each poll of an event without faults: announced, prepared, approved, started, over,
# recovered from
POLLS = (0, 1, 1, 120, 61, 1)


def begun(harness: EngineHarness) -> dict[str, int]:
    """How often each hook has begun."""
    return collections.Counter(mark.hook for mark in harness.marks("begin"))


def damage_and_kill(harness: EngineHarness, damage: str) -> None:
    """Damage the journal, let the daemon come round once, kill it, and start it again."""
    harness.pass_time(REOPEN_INTERVAL)
    DAMAGE[damage](str(harness.folder / "state" / "journal.db"))
    harness.journal.maintain()
    assert harness.journal.write_error is None
    harness.restart("kill")


@pytest.mark.parametrize("damage", list(DAMAGE))
@pytest.mark.parametrize("stage", range(1, len(POLLS)))
def test_event_is_prepared_and_recovered_from_once(
    damage: str, stage: int, azure: Azure, make_vm: Callable[..., Any]
) -> None:
    harness = make_vm()
    for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a"):
        harness.hook(hook)
    event = azure.schedule("Reboot", notice=120, started_for=60)
    for number, after in enumerate(POLLS):
        harness.poll(after=after)
        if number == stage:
            damage_and_kill(harness, damage)
    harness.poll(after=1)
    assert begun(harness) == {"prepare/10-a": 1, "prepare/20-b": 1, "recover/10-a": 1}
    assert azure.approvals() == [("vm1", event)]
    assert harness.engine.records == [] and harness.journal.write_error is None
    (record,) = harness.journal.reader().records(10)
    assert record.closed_at is not None and [step.hook for step in record.steps] == ["10-a", "20-b", "10-a"]


@pytest.mark.parametrize("damage", list(DAMAGE))
@pytest.mark.parametrize("hook", ["prepare/10-a", "recover/10-a"])
def test_hook_that_runs_while_it_happens_is_taken_over(
    damage: str, hook: str, azure: Azure, make_vm: Callable[..., Any]
) -> None:
    harness = make_vm()
    for each in ("prepare/10-a", "recover/10-a"):
        harness.hook(each, HANGS if each == hook else ":")
    azure.schedule("Reboot", notice=120, started_for=60)
    for after in POLLS:
        harness.poll(after=after)
        if harness.running():
            damage_and_kill(harness, damage)
            harness.poll()
            assert len(harness.running()) == 1
            harness.release(hook)
            harness.poll()
    harness.poll(after=1)
    assert begun(harness) == {"prepare/10-a": 1, "recover/10-a": 1}
    assert harness.engine.records == []


@pytest.mark.parametrize("path", ["state", "state/journal.db"])
def test_history_of_a_removed_journal_goes_on_with_the_latest_events(
    path: str, azure: Azure, make_vm: Callable[..., Any]
) -> None:
    harness = make_vm()
    harness.hook("prepare/10-a")
    for _event in range(3):
        azure.schedule("Reboot", notice=120, started_for=60)
        for after in (*POLLS, REOPEN_INTERVAL):
            harness.poll(after=after)
    removed = Path(harness.folder, path)
    shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
    harness.journal.maintain()
    harness.restart("kill")
    assert len(harness.journal.reader().records(10)) == 3
