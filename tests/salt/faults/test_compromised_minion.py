# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A compromised minion, and invalid input; further attacks are in test_engine.py."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-attacks")]

HINTS = 1000
HINT = "salt/beacon/a/azure_events/scheduled"
# MB that the flood and its events may leave on the master; a process for each hint takes 79
GROWTH = 60


def questions(fleet: Fleet) -> int:
    """Return the number of polls of the hostile minion."""
    return len(fleet.cluster.master.bus.events("salt/job/*/ret/a", fun="azure_events.status"))


def time_to_approval(fleet: Fleet, azure: Azure) -> float:
    began = time.monotonic()
    event_id = azure.announce("vm1", kind="Freeze", notice="4h", hold=True)
    fleet.wait_for(event_id, "approved")
    seconds = time.monotonic() - began
    azure.end(event_id)
    fleet.wait_for(event_id, "recovered")
    assert len(azure.approvals(event_id)) == 1
    return seconds


def test_flood_of_forged_hints_is_bounded(fleet: Fleet, azure: Azure) -> None:
    master = fleet.cluster.master
    # the modules that a master loads at the first hints stay
    fleet.hostile.ask("azure_events.flood", HINTS // 10)
    quiet = [time_to_approval(fleet, azure) for _number in range(3)]
    processes, memory, hints, asked = (
        master.processes(),
        master.memory(),
        len(master.bus.events(HINT)),
        questions(fleet),
    )
    began = time.monotonic()
    flood = threading.Thread(target=fleet.hostile.ask, args=("azure_events.flood", HINTS))
    flood.start()
    master.bus.wait_for_more(HINT, hints + 20)
    flooded = []
    most = 0
    # a busy master may lose some of them
    while flood.is_alive():
        flooded.append(time_to_approval(fleet, azure))
        most = max(most, master.processes())
    flood.join(60)
    flooded.append(time_to_approval(fleet, azure))
    grown = master.memory() - memory
    seconds = time.monotonic() - began
    runs = len(quiet) + len(flooded)
    fleet.notes.append(("counts", "vm1 %d/%d; %d" % (*fleet.step_logs["vm1"].counts, runs)))
    text = "approved %.1f s, flooded at most %.1f s; %d processes, flooded %d; %+.0f MB"
    fleet.notes.append(("measured", text % (statistics.median(quiet), max(flooded), processes, most, grown)))
    assert fleet.counts("vm1") == [(runs, runs)]
    assert most <= processes and grown < GROWTH
    assert questions(fleet) - asked <= seconds + 2


def test_forged_end_does_not_recover_a_preparation_by_hand(fleet: Fleet, azure: Azure) -> None:
    minion = fleet.cluster.minions["vm2"]
    assert minion.ask("azure_events.prepare")["outcome"] == "prepared"
    fleet.forge("salt/beacon/vm2/azure_events/gone", {"event_id": "forged", "id": "vm2"})
    assert minion.ask("azure_events.recover", "forged")["outcome"] == "not_prepared"
    event_id = azure.announce("vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm2=(1, 0))
    assert minion.ask("azure_events.recover")["outcome"] == "recovered"
    fleet.check(event_id, vm2=(1, 1))


def test_event_that_the_minion_does_not_select_is_not_prepared(fleet: Fleet, azure: Azure) -> None:
    minion = fleet.cluster.minions["vm2"]
    minion.configure(beacons={"azure_events": [{"interval": 1}, {"types": ["Reboot"]}]})
    minion.kill()
    fleet.cluster.start()
    event_id = azure.announce("vm2", kind="Freeze", notice="4h")
    fleet.hint("vm2", event_id)
    fleet.wait_for_reason(event_id, "vm2", "its selection excludes the event (types)")
    fleet.check(event_id, 0, vm2=(0, 0))
    azure.end(event_id)
    fleet.wait_for(event_id, "over")
    minion.configure(beacons={"azure_events": [{"interval": 1}]})
    minion.kill()
    fleet.check(event_id, 0, vm2=(0, 0))


@pytest.mark.parametrize("argument", ["policy_file", "receipts"])
def test_path_in_a_job_is_refused(fleet: Fleet, azure: Azure, tmp_path: Path, argument: str) -> None:
    (tmp_path / "secret").write_text("s3cret: [\n")
    for path in (str(tmp_path / "secret"), "/dev/zero"):
        answer = str(fleet.cluster.minions["vm1"].ask("azure_events.approve", test=True, **{argument: path}))
        assert "allow_paths" in answer and "s3cret" not in answer


def test_forged_starts_of_a_minion(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm1"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("prepare")
    for _number in range(20):
        fleet.forge("salt/minion/vm2/start", {"id": "vm2"})
        fleet.forge("salt/minion/vm1/start", {"id": "vm1"})
    fleet.step_logs["vm1"].go_on()
    with fleet.measured("approved"):
        fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))
