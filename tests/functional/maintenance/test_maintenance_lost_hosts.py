# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts are lost during maintenance: the others continue, and the lost one recovers when it is reachable again."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.maintenance.fleet import FREEZE, LATE, PREPARE, WAIT, Fleet, failed
from support.simulator_process import Simulator
from support.wait import wait_until

ALL = {"vm1", "vm2", "vm3"}
THREE = {**FREEZE, "resources": sorted(ALL)}


@pytest.mark.all
def test_lost_host_does_not_delay_the_recovery_of_the_others(trio: Simulator, tmp_path: Path, down: Path) -> None:
    trio.post("/events", THREE)
    fleet = Fleet.over_flaky_ssh(trio, tmp_path, down)

    def loses_one() -> None:
        (down / "vm3").touch()
        trio.advance(3 * 3600)
        wait_until(lambda: fleet.did("recover") == {"vm1", "vm2"})
        (down / "vm3").unlink()

    ran = fleet.maintain(at={WAIT: loses_one})
    assert ran.returncode == 0, ran.stdout
    assert fleet.course_of("recover")[2:] == ["vm3"]


@pytest.mark.all
def test_host_that_stays_lost_fails_at_the_time_limit(trio: Simulator, tmp_path: Path, down: Path) -> None:
    trio.post("/events", THREE)
    fleet = Fleet.over_flaky_ssh(trio, tmp_path, down, vm3={"maintenance_patience": 3})

    def loses_one() -> None:
        (down / "vm3").touch()
        trio.advance(3 * 3600)

    ran = fleet.maintain(at={WAIT: loses_one})
    assert failed(ran) == {"vm3"} and "could not be reached" in ran.stdout
    assert fleet.did("recover") == {"vm1", "vm2"} and fleet.note("vm3")

    (down / "vm3").unlink()
    ran = fleet.maintain(at={WAIT: lambda: None})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == ALL and fleet.note("vm3") is None


@pytest.mark.all
def test_hanging_connection_is_closed_and_opened_again(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", LATE)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)

    def dies_and_comes_back() -> None:
        azure.advance(2)
        fleet.wait_for_polls()
        (down / "vm2.hangs").touch()
        azure.advance(3 * 3600)
        # the stand-in for the new connection is called while the host still does not answer
        wait_until((down / "vm2.missed").exists)
        assert fleet.did("recover") <= {"vm1"}
        (down / "vm2.hangs").unlink()

    ran = fleet.hosts.playbook(fleet.own_plays(attempt=1, grace=10), fleet.steps(), at={WAIT: dies_and_comes_back})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1", "vm2"}


def test_task_of_the_preparation_that_hangs_is_ended(azure: Simulator, tmp_path: Path, down: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)
    tasks = tmp_path / "hangs.yml"
    tasks.write_text("- ansible.builtin.command: 'true'\n")
    ran = fleet.maintain(
        given={"maintenance_prepare": str(tasks), "maintenance_task_timeout": 10},
        at={
            PREPARE: (down / "vm2.hangs").touch,
            WAIT: lambda: ((down / "vm2.hangs").unlink(), fleet.start_and_end_events()),
        },
    )
    assert failed(ran) == {"vm2"} and "the preparation failed" in ran.stdout
    assert fleet.approvals() == [] and fleet.did("recover") == {"vm1", "vm2"}


@pytest.mark.all
def test_host_that_is_lost_while_it_prepares_is_not_approved_and_recovers(
    azure: Simulator, tmp_path: Path, down: Path
) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)

    def comes_back() -> None:
        (down / "vm2").unlink()
        fleet.start_and_end_events()

    ran = fleet.maintain(while_preparing=(down / "vm2").touch, at={WAIT: comes_back})
    assert failed(ran) == {"vm2"} and "the host was lost during the preparation" in ran.stdout
    assert fleet.approvals() == [] and fleet.reasons_of_starts() == ["NotBefore reached"]
    assert fleet.did("prepare") == {"vm1"} and fleet.did("recover") == {"vm1", "vm2"}
    assert fleet.note("vm1") is fleet.note("vm2") is None


@pytest.mark.all
def test_host_that_is_lost_when_it_writes_its_note_recovers_from_an_earlier_run(
    azure: Simulator, tmp_path: Path, down: Path
) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)
    assert fleet.maintain(recover="false").returncode != 0 and fleet.note("vm2")

    ran = fleet.maintain(at={"Write a note on this host": (down / "vm2").touch, WAIT: (down / "vm2").unlink})
    assert fleet.did("recover") == {"vm1", "vm2"} and fleet.note("vm2") is None, ran.stdout


@pytest.mark.all
def test_recovery_waits_for_a_command_that_outlives_its_connection(
    azure: Simulator, tmp_path: Path, down: Path
) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet.over_flaky_ssh(azure, tmp_path, down)
    drains, goes_on, drained = tmp_path / "drains", tmp_path / "goes_on", tmp_path / "drained"
    wait = f"until test {{{{ inventory_hostname }}}} = vm1 -o -e {goes_on}; do sleep 0.05; done"
    slow = f"touch {drains} && {wait} && touch {drained}"

    def cut_in_preparation() -> None:
        (tmp_path / "happened").touch()
        wait_until(drains.exists)
        (down / "vm2.cut").touch()

    def ends_later() -> None:
        (down / "vm2.cut").unlink()
        azure.advance(3 * 3600)
        wait_until(lambda: fleet.did("recover") == {"vm1"})
        fleet.wait_for_polls()
        assert fleet.did("recover") == {"vm1"}
        goes_on.touch()

    ran = fleet.maintain(slow, at={PREPARE: cut_in_preparation, WAIT: ends_later}, recover=f"rm -f {drained}")
    assert failed(ran) == {"vm2"}
    assert fleet.approvals() == [] and fleet.did("recover") == {"vm1", "vm2"} and not drained.exists()
