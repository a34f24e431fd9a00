# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A minion is killed, is busy, is taken away, or fails to recover."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-minion")]


def test_minion_killed_in_the_middle_of_a_preparation(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
    fleet.cluster.minions["vm2"].kill()
    fleet.step_logs["vm2"].go_on()
    fleet.step_logs["vm1"].wait("prepare")
    fleet.cluster.minions["vm2"].start()
    fleet.wait_for(event_id, "approved")
    assert fleet.step_logs["vm2"].count("begin") == 2
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_recovery_that_fails(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].fail("recover")
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    azure.simulator.advance(2)
    azure.end(event_id)
    fleet.step_logs["vm2"].wait("try")
    wait_until(lambda: "recover: failed" in (fleet.row(event_id, "vm2")["why_not"] or ""), "the reason")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 0))
    fleet.step_logs["vm2"].mend()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_preempted_minion_that_comes_back(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", kind="Preempt")
    fleet.wait_for(event_id, "approved")
    azure.simulator.advance(2)
    fleet.cluster.minions["vm1"].kill()
    azure.end(event_id)
    fleet.check(event_id, vm1=(1, 0))
    fleet.cluster.minions["vm1"].start()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1))


def test_preempt_during_a_state_run(fleet: Fleet, azure: Azure, tmp_path: Path) -> None:
    minion = fleet.cluster.minions["vm1"]
    minion.start_job(
        "state.single", "cmd.run", f"touch {tmp_path}/begun; while ! test -e {tmp_path}/end; do sleep 0.1; done"
    )
    wait_until((tmp_path / "begun").exists, "the state run")
    event_id = azure.announce("vm1", kind="Preempt")
    fleet.wait_for(event_id, "approved")
    assert minion.ask("saltutil.is_running", "state.single") != []
    (tmp_path / "end").touch()
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1))
