# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A maintenance during which a minion is killed or fails, the master is away, or the event changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.salt.fleet import Fleet
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults")]


def test_minion_killed_in_the_middle_of_a_preparation(fleet: Fleet) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
    fleet.cluster.minions["vm2"].kill()
    fleet.step_logs["vm2"].go_on()
    fleet.step_logs["vm1"].wait("prepare")
    fleet.cluster.minions["vm2"].start()
    fleet.wait_for(event_id, "approved")
    assert fleet.step_logs["vm2"].count("begin") == 2
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_recovery_that_fails(fleet: Fleet) -> None:
    fleet.step_logs["vm2"].fail("recover")
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    fleet.azure.simulator.advance(2)
    fleet.azure.end(event_id)
    fleet.step_logs["vm2"].wait("try")
    wait_until(lambda: "recover: failed" in (fleet.row(event_id, "vm2")["why_not"] or ""), "the reason")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 0))
    fleet.step_logs["vm2"].mend()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_preempted_minion_that_comes_back(fleet: Fleet) -> None:
    event_id = fleet.azure.announce("vm1", kind="Preempt", impact_for=1)
    fleet.wait_for(event_id, "approved")
    fleet.azure.simulator.advance(2)
    fleet.cluster.minions["vm1"].kill()
    fleet.azure.end(event_id)
    fleet.check(event_id, vm1=(1, 0))
    fleet.cluster.minions["vm1"].start()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1))


def test_preempt_during_a_state_run(fleet: Fleet, tmp_path: Path) -> None:
    minion = fleet.cluster.minions["vm1"]
    minion.start_job(
        "state.single", "cmd.run", f"touch {tmp_path}/begun; while ! test -e {tmp_path}/end; do sleep 0.1; done"
    )
    wait_until((tmp_path / "begun").exists, "the state run")
    event_id = fleet.azure.announce("vm1", kind="Preempt", impact_for=1)
    fleet.wait_for(event_id, "approved")
    assert minion.ask("saltutil.is_running", "state.single") != []
    (tmp_path / "end").touch()
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1))


def test_master_killed_between_preparation_and_approval(fleet: Fleet) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm1"].wait("prepare")
    fleet.step_logs["vm2"].wait("begin")
    fleet.cluster.master.kill()
    fleet.step_logs["vm2"].go_on()
    fleet.step_logs["vm2"].wait("prepare")
    fleet.cluster.start()
    fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_master_away_for_the_whole_end(fleet: Fleet) -> None:
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    fleet.cluster.master.kill()
    fleet.azure.simulator.advance(2)
    fleet.azure.end(event_id)
    # one poll per second
    fleet.azure.wait_for_polls("vm1", more=35)
    fleet.cluster.start()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_master_that_returns_without_its_file_after_the_end(fleet: Fleet) -> None:
    """The minions have restarted too: only their records remain."""
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    for daemon in (fleet.cluster.master, fleet.cluster.minions["vm1"], fleet.cluster.minions["vm2"]):
        daemon.kill()
    fleet.engine_file.unlink()
    fleet.azure.simulator.advance(2)
    fleet.azure.end(event_id)
    fleet.cluster.start()
    for name in ("vm1", "vm2"):
        fleet.step_logs[name].wait("recover")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_cancelled_in_the_middle_of_a_preparation(fleet: Fleet) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm1"].wait("prepare")
    fleet.step_logs["vm2"].wait("begin")
    fleet.azure.cancel(event_id)
    fleet.wait_for(event_id, "over")
    fleet.step_logs["vm2"].go_on()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, 0, vm1=(1, 1), vm2=(1, 1))


def test_vm_added_during_the_preparation(fleet: Fleet) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
    fleet.azure.change(event_id, resources=["vm1", "vm2", "vm3"])
    fleet.step_logs["vm3"].wait("prepare")
    fleet.check(event_id, 0, vm1=(1, 0), vm2=(0, 0), vm3=(1, 0))
    fleet.step_logs["vm2"].go_on()
    fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(1, 1))


def test_vm_added_after_the_approval(fleet: Fleet) -> None:
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    fleet.azure.change(event_id, resources=["vm1", "vm2", "vm3"])
    fleet.step_logs["vm3"].wait("prepare")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(1, 1))
