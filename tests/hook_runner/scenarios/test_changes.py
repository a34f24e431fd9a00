# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the scenarios of docs/reference/scheduled-events.md 8 leave out: events that change, meet each other, or come back."""

from __future__ import annotations

from collections.abc import Callable

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]


def begun(rig: Rig) -> list[tuple[str, str]]:
    return [(mark.hook, mark.event_id) for mark in rig.marks("begin")]


def test_this_vm_comes_to_an_event(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot", "vm2")
    me.look()
    me.look(after=60)
    assert me.ran() == []
    azure.change(event, resources=["vm2", "vm1"])
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"] and "concerns-us" in me.words(event)
    azure.complete(event)
    me.look()
    assert me.ran() == ["prepare/10-a", "recover/10-a"]


def test_this_vm_comes_to_an_event_that_has_started(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot", "vm2", notice=30, started_for=60)
    me.look()
    me.look(after=31)
    azure.change(event, resources=["vm2", "vm1"])
    me.look(after=1)
    assert [hook for hook in me.ran() if hook.startswith("prepare")] == []
    assert len(me.ran()) == 1 and azure.requests("POST") == []
    me.look(after=60)
    assert me.ran()[1:] == ["recover/10-a"]


def test_this_vm_leaves_an_event(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    me.look()
    azure.change(event, resources=["vm2"])
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    me.look(after=60)
    azure.complete(event)
    me.look()
    me.look(after=60)
    assert me.ran() == ["prepare/10-a", "recover/10-a"] and me.engine.records == []


def test_this_vm_leaves_an_event_while_it_prepares(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    me.look()
    azure.change(event, resources=["vm2"])
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"] and me.marks("end") == me.marks("end")[-1:]
    azure.change(event, resources=["vm1", "vm2"])
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    me.look(after=61)
    assert me.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]


def test_resources_of_others_come_and_go_without_another_preparation(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot", hold=True)
    me.look()
    for resources in (["vm1", "vm2"], ["vm3", "vm1"], ["vm1"]):
        azure.change(event, resources=resources)
        me.look(after=1)
    assert me.ran() == ["prepare/10-a"]


def test_a_grown_event_is_not_approved_by_what_was_said_before(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig()
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    azure.change(event, resources=["vm1", "vm2"])
    me.look(after=1)
    me.release("prepare/10-a")
    me.settle()
    assert azure.requests("POST") == [] and "release other VMs" in me.status()["events"][0]["reason"]


def test_cancelled_while_it_prepares(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    event = azure.schedule("Reboot")
    me.look()
    azure.cancel(event)
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "stopped"), ("recover/10-a", "ok")]
    assert azure.requests("POST") == [] and me.engine.records == []


def test_a_second_event_while_a_hook_runs_is_prepared_beside_it(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"10-reboot": {"types": ["Reboot"]}, "10-freeze": {"types": ["Freeze"]}})
    me.hook("prepare/10-reboot", HANGS)
    me.hook("prepare/10-freeze")
    first = azure.schedule("Reboot", hold=True)
    me.look()
    second = azure.schedule("Freeze", hold=True)
    me.look(after=1)
    assert begun(me) == [("prepare/10-reboot", first), ("prepare/10-freeze", second)]
    assert azure.approvals() == [("vm1", second)]
    me.release("prepare/10-reboot")
    me.settle()
    assert azure.approvals() == [("vm1", second), ("vm1", first)]


def test_one_hook_never_runs_twice_at_once(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    first = azure.schedule("Reboot", hold=True)
    second = azure.schedule("Freeze", hold=True)
    me.look()
    assert begun(me) == [("prepare/10-a", first)]
    assert "waits for the hook of the same name" in me.status()["events"][1]["waiting"]
    me.release("prepare/10-a")
    me.settle()
    assert begun(me) == [("prepare/10-a", first), ("prepare/10-a", second)]
    me.release("prepare/10-a")
    me.settle()
    assert azure.approvals() == [("vm1", first), ("vm1", second)]


def test_a_type_that_becomes_worse_runs_the_hooks_that_have_not_run(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"20-b": {"types": ["Reboot", "Redeploy"]}})
    me.hook("prepare/10-a")
    me.hook("prepare/20-b", HANGS)
    event = azure.schedule("Freeze", hold=True)
    me.look()
    assert me.ran() == ["prepare/10-a"] and len(azure.requests("POST")) == 1
    azure.change(event, type="Redeploy")
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "prepare/20-b"] and "worse" in me.words(event)
    me.release("prepare/20-b")
    me.settle()
    azure.change(event, type="Freeze")
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "prepare/20-b"] and len(azure.requests("POST")) == 1


def test_an_id_that_comes_back_is_another_event(azure: Azure, me: Rig) -> None:
    entry = azure.entry()
    azure.show(entry)
    me.look()
    azure.show()
    me.look(after=1)
    azure.show(azure.entry())
    me.look(after=61)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
    assert [record.occurrence for record in me.journal.reader().records(5, entry["EventId"])] == [2, 1]
    assert "anomaly" in me.words(entry["EventId"])


def test_an_id_that_comes_back_after_a_restart_is_another_event_too(azure: Azure, me: Rig) -> None:
    entry = azure.entry()
    azure.show(entry)
    me.look()
    azure.show()
    me.look(after=1)
    me.restart("reboot")
    azure.show(azure.entry(EventId=entry["EventId"].lower()))
    me.look(after=61)
    assert me.record(entry["EventId"]).occurrence == 2 and me.ran("prepare") == ["prepare/10-a"] * 2
