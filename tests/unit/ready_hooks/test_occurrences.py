# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ready_hooks.core import report
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.event import Event, from_environment
from ready_hooks.core.hook import Run
from ready_hooks.core.occurrences import KEPT_FOR, MOST_KEPT, Occurrence, Occurrences
from ready_hooks.core.record import Record
from support.ready_hooks.clock import Clock

EVENT = from_environment({"EVENT_TYPE": "Reboot", "EVENT_RESOURCE": "web1", "EVENT_DESCRIPTION": "why"})


@pytest.fixture
def clock() -> Clock:
    return Clock()


def at(folder: Path, clock: Clock, stage: str, event_id: str = "1", **changes: Any) -> Occurrences:
    event = EVENT._replace(stage=stage, event_id=event_id, **changes)
    return Occurrences(Run("log", {}, event, Deadline(60), Record(str(folder), "log", "log"), False), clock)


def test_end_of_an_event_has_its_start_and_what_recovery_does_not_know(tmp_path: Path, clock: Clock) -> None:
    at(tmp_path, clock, "prepare").enter()
    clock.now = 1100.0
    at(tmp_path, clock, "started").enter()
    clock.now = 1200.0
    at(tmp_path, clock, "started").enter()
    [ended] = at(tmp_path, clock, "recover", description="", outcome="completed").ended()
    assert (ended.seen, ended.started) == (1000.0, 1100.0)
    assert (ended.event.description, ended.event.outcome, ended.event.stage) == ("why", "completed", "recover")
    assert report.values(ended, 1230.4)["duration"] == 130


def test_recovery_ends_all_events_of_the_record(tmp_path: Path, clock: Clock) -> None:
    for event_id, stage in (("1", "prepare"), ("2", "prepare"), ("2", "started"), ("3", "emergency"), ("4", "prepare")):
        at(tmp_path, clock, stage, event_id).enter()
    recovery = at(tmp_path, clock, "recover", "4", outcome="completed")
    ended = recovery.ended()
    assert {entry.event.event_id: entry.event.outcome for entry in ended} == {
        "1": "unknown",
        "2": "completed",
        "3": "completed",
        "4": "completed",
    }
    recovery.remove(ended)
    assert at(tmp_path, clock, "recover", "4").ended() == []


def test_reported_stage_is_remembered_for_its_event_alone(tmp_path: Path, clock: Clock) -> None:
    first = at(tmp_path, clock, "prepare")
    assert first.enter().reported == ()
    first.mark_reported()
    assert at(tmp_path, clock, "prepare").enter().reported == ("prepare",)
    assert at(tmp_path, clock, "prepare", "2").enter().reported == ()


def test_old_and_too_many_events_are_dropped(tmp_path: Path, clock: Clock) -> None:
    at(tmp_path, clock, "prepare", "old").enter()
    clock.now += KEPT_FOR
    for number in range(MOST_KEPT + 5):
        at(tmp_path, clock, "prepare", f"{number}").enter()
        clock.now += 1
    kept = [entry.event.event_id for entry in at(tmp_path, clock, "recover", "").ended()]
    assert kept == [f"{number}" for number in range(5, MOST_KEPT + 5)]


@pytest.mark.parametrize(
    "content", ["{", '{"version": 1, "use": "log", "data": {"events": {"1": {"event": {}}}}}', "[]"]
)
def test_record_that_is_not_usable_is_a_warning(
    tmp_path: Path, clock: Clock, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.json").write_text(content, encoding="utf-8")
    assert at(tmp_path, clock, "recover").ended() == []
    assert "the record is not used" in capsys.readouterr().err
    assert at(tmp_path, clock, "prepare").enter().seen == clock.now


def test_record_that_cannot_be_written_is_a_warning(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert at(tmp_path / "file", clock, "prepare").enter().seen == clock.now
    assert "the record cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"stage": "prepare", "not_before": "2026-11-21T12:54:00Z", "seconds_left": 899},
            "web1: Reboot is scheduled, not before 2026-11-21T12:54:00Z (in 899 s): why",
        ),
        ({"stage": "prepare", "description": "a\nb"}, "web1: Reboot is scheduled: a?b"),
        ({"stage": "emergency"}, "web1: Reboot has started without a preparation: why"),
        ({"stage": "started"}, "web1: Reboot has started: why"),
        ({"stage": "recover", "outcome": "completed"}, "web1: Reboot is over (completed), after 30 s"),
    ],
)
def test_text_describes_the_stage(changes: dict[str, object], expected: str) -> None:
    event = Event(**{**EVENT._asdict(), **changes})
    assert report.values(Occurrence(event, 1000.0, None, ()), 1030.0)["text"] == expected


def test_values_have_a_bounded_length_and_unknown_numbers_are_none() -> None:
    event = EVENT._replace(stage="prepare", description="x" * 10_000, duration=-1)
    values = report.values(Occurrence(event, 1000.0, None, ()), 1000.0)
    assert (len(str(values["description"])), values["expected_duration"]) == (2000, None)
    assert tuple(values) == report.NAMES
