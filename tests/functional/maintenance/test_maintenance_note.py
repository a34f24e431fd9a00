# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The note of a maintenance run is on the host from the first prepare task to the last recover task."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.maintenance.fleet import FREEZE, LATE, WAIT, Fleet, failed, variables
from support.simulator_process import Simulator

pytestmark = pytest.mark.all


def test_note_exists_from_before_the_preparation_until_after_the_recovery(
    azure: Simulator, fleet: Fleet, tmp_path: Path
) -> None:
    azure.post("/events", LATE)
    has_note = f"test -e {tmp_path}/{{{{ inventory_hostname }}}}/notes/note.json"
    ran = fleet.maintain(has_note, recover=has_note)
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == fleet.did("recover") == {"vm1", "vm2"}
    assert fleet.note("vm1") is fleet.note("vm2") is None


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


def test_event_not_over_at_the_time_limit_is_continued_by_the_next_run(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", {**LATE, "resources": ["vm1"]})
    ran = fleet.maintain(at={WAIT: lambda: None}, given={"maintenance_patience": 2})
    assert failed(ran) == {"vm1"} and "the events are not over after" in ran.stdout
    assert fleet.did("prepare") == {"vm1"} and fleet.did("recover") == set()
    assert fleet.note("vm1")

    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"vm1"} and fleet.note("vm1") is None
