# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A minion stops, is killed, is busy, is taken away, or fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-minion")]

ENDED_EVENTS = 10


def test_minion_killed_in_the_middle_of_a_preparation(fleet: Fleet, azure: Azure) -> None:
    """The minion knows ten events that are over."""
    ended = [azure.announce("vm2", kind="Freeze", notice="4h") for _number in range(ENDED_EVENTS)]
    for event_id in ended:
        fleet.wait_for(event_id, "approved")
    azure.simulator.advance(2)
    for event_id in ended:
        azure.end(event_id)
    for event_id in ended:
        fleet.wait_for(event_id, "recovered")
    fleet.check(ended[0], vm2=(1, 1))
    fleet.step_logs["vm2"].reset()
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
    fleet.cluster.minions["vm2"].kill()
    fleet.step_logs["vm2"].go_on()
    fleet.step_logs["vm1"].wait("prepare")
    with fleet.measured("approved after its return"):
        fleet.cluster.minions["vm2"].start()
        fleet.wait_for(event_id, "approved")
    assert fleet.step_logs["vm2"].count("begin") == 2
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_stopped_minion(fleet: Fleet, azure: Azure) -> None:
    fleet.cluster.minions["vm2"].kill()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm1"].wait("prepare")
    fleet.wait_for(event_id, "held", reason="vm2: minion vm2 does not answer")
    assert fleet.row(event_id, "vm2")["why_not"] == "minion vm2 does not answer"
    fleet.check(event_id, 0, vm1=(1, 0), vm2=(0, 0))
    with fleet.measured("approved after its return"):
        fleet.cluster.minions["vm2"].start()
        fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_preparation_that_fails(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].fail("prepare")
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    assert list(fleet.wait_for(event_id, "failed").data["reasons"]) == ["vm2"]
    fleet.wait_for_reason(event_id, "vm2", "minion vm2: failed")
    assert fleet.step_logs["vm2"].count("begin") == 3
    fleet.check(event_id, 0, vm1=(1, 0), vm2=(0, 0))
    fleet.step_logs["vm2"].mend()
    fleet.run("prepare", event_id)
    fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_recovery_that_fails(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].fail("recover")
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    azure.simulator.advance(2)
    azure.end(event_id)
    fleet.step_logs["vm2"].wait("try")
    fleet.wait_for_reason(event_id, "vm2", "recover: failed")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 0))
    fleet.step_logs["vm2"].mend()
    with fleet.measured("recovered when it can be"):
        fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_recovery_by_hand_after_failures(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm1"].fail("recover")
    event_id = azure.announce("vm1", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    azure.simulator.advance(2)
    azure.end(event_id)
    fleet.step_logs["vm1"].wait("try", times=3)
    fleet.step_logs["vm1"].mend()
    with fleet.measured("recovered after the command"):
        fleet.run("recover", event_id)
        fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1))


def test_preempted_minion_that_comes_back(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", kind="Preempt")
    fleet.wait_for(event_id, "approved")
    azure.simulator.advance(2)
    fleet.cluster.minions["vm1"].kill()
    azure.end(event_id)
    fleet.check(event_id, vm1=(1, 0))
    with fleet.measured("recovered after its return"):
        fleet.cluster.minions["vm1"].start()
        fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1))


def test_preempt_during_a_state_run(fleet: Fleet, azure: Azure, tmp_path: Path) -> None:
    minion = fleet.cluster.minions["vm1"]
    minion.start_job(
        "state.single", "cmd.run", f"touch {tmp_path}/begun; while ! test -e {tmp_path}/end; do sleep 0.1; done"
    )
    wait_until((tmp_path / "begun").exists, "the state run")
    with fleet.measured("prepared and approved"):
        event_id = azure.announce("vm1", kind="Preempt")
        fleet.wait_for(event_id, "approved")
    assert minion.ask("saltutil.is_running", "state.single") != []
    (tmp_path / "end").touch()
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1))
