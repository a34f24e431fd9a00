# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which VM this is: remembered for a start at which IMDS does not say it, and compared with the journal's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]


def copied(source: Rig, target: Rig) -> None:
    """Give a VM the disk of another one, which has been stopped."""
    source.journal.close()
    os.makedirs(Path(target.settings.journal).parent)
    shutil.copy(source.settings.journal, target.settings.journal)
    target.boot_number = 9


@pytest.mark.parametrize("how", ["stop", "kill", "reboot"])
def test_event_is_prepared_after_a_restart_although_imds_does_not_give_the_name(
    azure: Azure, me: Rig, how: str
) -> None:
    me.look()
    azure.fault("server-error", route="instance")
    event = azure.schedule("Preempt", notice=30, hold=True)
    me.restart(how)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_name_is_unknown_where_no_earlier_run_has_noted_it(azure: Azure, me: Rig) -> None:
    azure.fault("server-error", route="instance")
    azure.schedule("Preempt", notice=30, hold=True)
    me.look()
    assert me.ran() == [] and me.engine.own_name is None
    azure.heal()
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"]


def test_journal_of_another_vm_is_set_aside_and_none_of_its_hooks_runs(azure: Azure, make_rig: MakeRig) -> None:
    one, two = make_rig("vm1"), make_rig("vm2")
    for rig in (one, two):
        for stage in ("prepare", "recover"):
            rig.hook(stage + "/10-a")
    azure.schedule("Reboot", "vm1", hold=True)
    over = azure.schedule("Freeze", "vm1", hold=True)
    one.hook("recover/10-a", HANGS)
    one.look()
    azure.cancel(over)
    one.look(after=1)
    copied(one, two)
    two.start()
    two.engine.tick()
    assert two.ran() == []
    two.look(after=1)
    assert two.ran() == [] and [record.affects_this_vm for record in two.engine.records] == [False]
    assert [name for name in os.listdir(Path(two.settings.journal).parent) if "other-vm" in name]
    mine = azure.schedule("Reboot", "vm2", hold=True)
    two.look(after=1)
    assert two.ran() == ["prepare/10-a"] and azure.approvals()[-1] == ("vm2", mine)


def test_journal_of_another_vm_is_noticed_by_a_configured_name(azure: Azure, make_rig: MakeRig) -> None:
    one, two = make_rig("vm1", resource_name="vm1"), make_rig("vm2", resource_name="vm2")
    for rig in (one, two):
        rig.hook("prepare/10-a")
    azure.schedule("Reboot", "vm1", hold=True)
    one.look()
    copied(one, two)
    two.look(after=1)
    assert two.ran() == [] and two.said("this VM is vm2") == 1


def test_recovery_waits_for_the_name_after_a_boot(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    azure.cancel(event)
    me.look(after=1)
    me.restart("reboot")
    me.engine.tick()
    assert me.ran("recover") == ["recover/10-a"]
    me.hook("recover/10-a")
    me.look(after=1)
    assert me.ran("recover") == ["recover/10-a"] * 2 and me.engine.records == []
