# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The note of a run on its host: only one run handles a host, and the next run continues with it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.maintenance.fleet import FREEZE, LATE, PLAYBOOK, WAIT, Fleet, failed, variables
from support.simulator_process import Simulator


def change_note(fleet: Fleet, name: str, **members: Any) -> None:
    path = fleet.folder / name / "notes" / "note.json"
    note = json.loads(path.read_text())
    note.update(members)
    path.write_text(json.dumps(note))


def left_by_another_controller(azure: Simulator, folder: Path) -> Fleet:
    """Return a fleet whose vm1 has the note of a run on another controller, which may still be active."""
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    fleet = Fleet(azure, folder)
    fleet.maintain(at={WAIT: lambda: None}, given={"maintenance_patience": 1})
    change_note(fleet, "vm1", held=True, run={**(fleet.note("vm1") or {})["run"], "id": "other", "host": "elsewhere"})
    return fleet


def test_second_run_at_once_fails_and_names_the_note(azure: Simulator, fleet: Fleet, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    second: list[subprocess.CompletedProcess[str]] = []
    ran = fleet.maintain(while_preparing=lambda: second.append(fleet.hosts.playbook(PLAYBOOK, fleet.steps())))
    assert failed(second[0]) == {"vm1", "vm2"}
    assert (
        str(tmp_path / "vm1" / "notes" / "note.json") in second[0].stdout
        and "; wait until that run has ended, or set maintenance_take_over" in second[0].stdout
    )
    assert ran.returncode == 0, ran.stdout
    assert fleet.course_of("prepare").count("vm1") == fleet.course_of("recover").count("vm1") == 1
    assert len(fleet.approvals()) == 1


@pytest.mark.all
def test_note_of_a_run_on_another_controller_is_respected_until_it_expires(azure: Simulator, tmp_path: Path) -> None:
    fleet = left_by_another_controller(azure, tmp_path)
    ran = fleet.maintain(at={WAIT: lambda: None})
    assert failed(ran) == {"vm1"} and "elsewhere" in ran.stdout
    assert fleet.course_of("prepare") == ["vm1"] and fleet.approvals()[1:] == []

    change_note(fleet, "vm1", updated="2020-01-01T00:00:00Z")
    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1"} and fleet.note("vm1") is None


@pytest.mark.all
def test_take_over_replaces_the_note_of_another_controller(azure: Simulator, tmp_path: Path) -> None:
    fleet = left_by_another_controller(azure, tmp_path)
    ran = fleet.maintain(given={"maintenance_take_over": True})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1"} and fleet.note("vm1") is None


@pytest.mark.all
def test_run_whose_host_was_taken_over_does_not_recover_it(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**FREEZE, "resources": ["vm1"]})

    def is_taken_over() -> None:
        change_note(fleet, "vm1", run={**(fleet.note("vm1") or {})["run"], "id": "other"})

    ran = fleet.maintain(at={WAIT: is_taken_over})
    assert failed(ran) == {"vm1"} and "another run has taken over the host" in ran.stdout
    assert fleet.did("recover") == set() and (fleet.note("vm1") or {})["run"]["id"] == "other"


@pytest.mark.all
def test_note_cannot_be_written_then_nothing_is_prepared(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(
        azure,
        tmp_path,
        ("vm1",),
        vm2={**variables(azure, tmp_path, "vm2"), "maintenance_notes": "/proc/no-such-folder"},
    )
    ran = fleet.maintain()
    assert failed(ran) == {"vm2"} and "the note cannot be written" in ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1"} and fleet.approvals() == []


@pytest.mark.all
def test_failed_recovery_is_repeated_by_the_next_run(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", FREEZE)
    ran = fleet.maintain(recover="test {{ inventory_hostname }} != vm2")
    assert failed(ran) == {"vm2"} and fleet.did("recover") == {"vm1"}
    left = fleet.note("vm2")
    assert fleet.note("vm1") is None and left and not left["held"]

    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert fleet.course_of("recover") == ["vm1", "vm2"] and fleet.course_of("prepare").count("vm2") == 1
    assert fleet.note("vm2") is None


@pytest.mark.all
def test_event_not_over_at_the_time_limit_is_continued_by_the_next_run(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    ran = fleet.maintain(at={WAIT: lambda: None}, given={"maintenance_patience": 2})
    assert failed(ran) == {"vm1"} and "the events are not over after" in ran.stdout
    assert fleet.did("prepare") == {"vm1"} and fleet.did("recover") == set()
    assert fleet.note("vm1")

    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1"} and fleet.note("vm1") is None
