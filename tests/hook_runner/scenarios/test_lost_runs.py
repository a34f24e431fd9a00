# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The journal cannot be written, or is lost, and the daemon is killed: what a hook did is known from its run folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure
from support.daemon.small_disk import Disk


def folders(me: Rig) -> list[str]:
    runs = Path(me.settings.run_directory, "runs")
    return os.listdir(runs) if runs.exists() else []


def test_result_stays_until_the_journal_has_it_so_that_a_kill_prepares_once(azure: Azure, me: Rig, disk: Disk) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    me.look()
    disk.fail(me)
    me.release("prepare/10-a")
    me.settle()
    assert me.steps(event) == [("prepare/10-a", "ok")]
    assert len(folders(me)) == 1
    for _kill in range(3):
        me.restart("kill")
        me.look(after=1)
        assert me.steps(event) == [("prepare/10-a", "ok")] and len(folders(me)) == 1
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == []
    disk.heal()
    me.restart("kill")
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    assert folders(me) == []


def test_folders_go_once_the_journal_is_written_again(azure: Azure, me: Rig, disk: Disk) -> None:
    me.hook("prepare/20-b", HANGS)
    azure.schedule("Reboot")
    me.engine.runtime.hooks = {}
    disk.fail(me)
    me.engine.reconfigure(me.settings, me._hooks())
    me.look()
    assert len(folders(me)) == 2
    disk.heal()
    me.release("prepare/20-b")
    me.settle()
    assert me.journal.write_error is None and folders(me) == []


@pytest.mark.parametrize("ends_before", [True, False], ids=["ended", "runs"])
def test_run_whose_start_was_never_written_is_adopted(azure: Azure, me: Rig, disk: Disk, ends_before: bool) -> None:
    me.hook("prepare/10-a", HANGS)
    me.start()
    disk.fail(me)
    event = azure.schedule("Reboot")
    me.look()
    if ends_before:
        me.release("prepare/10-a")
        me.settle()
    me.restart("kill")
    me.look(after=1)
    if not ends_before:
        me.release("prepare/10-a")
        me.settle()
    assert me.ran() == ["prepare/10-a"] and me.steps(event) == [("prepare/10-a", "ok")]
    assert "hook-adopted" in me.words(event)
    disk.heal()
    me.look(after=1)
    me.restart("kill")
    me.look(after=1)
    assert me.ran("prepare") == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_event_that_came_back_after_a_recovery_is_prepared_again(azure: Azure, me: Rig, disk: Disk) -> None:
    me.start()
    disk.fail(me)
    entry = azure.entry()
    azure.show(entry)
    me.look()
    azure.show()
    me.look(after=1)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    me.restart("kill")
    azure.show(entry)
    me.look(after=1)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]


def test_recovery_that_the_journal_lost_is_not_repeated(azure: Azure, me: Rig, disk: Disk) -> None:
    event = azure.schedule("Reboot", hold=True)
    me.look()
    disk.fail(me)
    azure.cancel(event)
    me.look(after=1)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    me.restart("kill")
    me.look(after=1)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    assert me.engine.records == []


def test_lost_run_of_an_event_that_is_gone_is_ended(azure: Azure, me: Rig, disk: Disk) -> None:
    me.hook("prepare/10-a", HANGS)
    me.start()
    disk.fail(me)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.restart("kill")
    assert len(folders(me)) == 1
    azure.cancel(event)
    me.look(after=1)

    def has_ended() -> bool:
        me.engine.tick()
        return folders(me) == []

    me.wait(has_ended)
    assert me.engine.records == [] and me.ran() == ["prepare/10-a"]
