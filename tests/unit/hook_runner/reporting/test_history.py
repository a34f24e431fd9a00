# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
from datetime import timedelta, timezone
from typing import Any

import pytest

from azure_scheduled_events.outcome import UNKNOWN
from hook_runner.records import RECOVER, SENT, SKIPPED, TIMEOUT, EventRecord, TimelineEntry
from hook_runner.reporting import history
from support.daemon.record_factory import NOON, add_step, after, close_record, end_step, make_record


def a_story() -> EventRecord:
    record = make_record(1)
    end_step(record, add_step(record, 2), "moved 3 VMs\n\nall \u00fcber\n")
    late = add_step(record, 3, hook="20-late")
    end_step(record, late, "", TIMEOUT, -15)
    late.reason = "it took longer than its 2 s"
    skipped = add_step(record, 4, stage=RECOVER, hook="10-app", state=SKIPPED)
    skipped.reason = "one run serves this event and E-0"
    again = add_step(record, 5, stage=RECOVER, hook="30-again")
    again.attempt, again.reason = 2, "exit status 3"
    end_step(record, again, "no\n", "failed", 3)
    close_record(record)
    return record


STORY = """\
event E-1
  what       Freeze by Platform, Scheduled, not before 2026-11-21 12:15:00 UTC, expected to take 9 s
  hits       web-0, web-1
  says       Host maintenance
  approval   accepted after 2 requests: rule 1 (asked for by root)
  outcome    completed, over since 2026-11-21 12:01:00 UTC
  timeline   (UTC)
    2026-11-21 12:00:00.123  appeared      Freeze by Platform hits this VM
    2026-11-21 12:00:01.123  hook-started  prepare/10-app
    2026-11-21 12:00:03.623  hook-ended    prepare/10-app: ok
    2026-11-21 12:00:01.123  hook-started  prepare/20-late
    2026-11-21 12:00:03.623  hook-ended    prepare/20-late: timeout
    2026-11-21 12:00:01.123  hook-started  recover/10-app
    2026-11-21 12:00:01.123  hook-started  recover/30-again
    2026-11-21 12:00:03.623  hook-ended    recover/30-again: failed
    2026-11-21 12:01:01.123  closed        recovered
  prepare
    10-app  ok  after 2.5 s  exit status 0
      | moved 3 VMs
      |
      | all \u00fcber
    20-late  timeout  after 2.5 s  signal 15: it took longer than its 2 s
  recover
    10-app  skipped: one run serves this event and E-0
    30-again  failed  after 2.5 s  exit status 3  attempt 2
      | no"""


def test_text_has_the_whole_history() -> None:
    assert history.as_text([a_story()]) == STORY


def test_no_events_are_said_to_be_none() -> None:
    assert history.as_text([]) == "no events"
    assert history.to_dict([]) == []


def test_events_keep_their_order() -> None:
    records = [make_record(number, f"E-{number}") for number in (2, 1, 3)]
    assert [part.splitlines()[0] for part in history.as_text(records).split("\n\n")] == [
        "event E-2",
        "event E-1",
        "event E-3",
    ]
    assert [each["event"]["event_id"] for each in history.to_dict(records)] == ["E-2", "E-1", "E-3"]


def test_data_has_everything_and_is_json() -> None:
    (data,) = json.loads(json.dumps(history.to_dict([a_story()])))
    assert data["event"] == json.loads(json.dumps(a_story().event.as_dict()))
    assert set(data) == {
        "event",
        "life",
        "first_seen",
        "first_type",
        "first_status",
        "concerned",
        "seen_started",
        "gone_at",
        "outcome",
        "closed_at",
        "approval",
        "stages",
        "timeline",
    }
    assert (data["first_seen"], data["gone_at"], data["closed_at"]) == (
        "2026-11-21T12:00:00.123Z",
        "2026-11-21T12:01:00.123Z",
        "2026-11-21T12:01:01.123Z",
    )
    assert (data["outcome"], data["life"], data["concerned"], data["seen_started"]) == ("completed", 1, True, True)
    assert data["approval"] == {
        "state": "accepted",
        "reason": "rule 1",
        "attempts": 2,
        "asked_by": "root",
        "error": None,
    }
    assert {stage: [run["hook"] for run in runs] for stage, runs in data["stages"].items()} == {
        "prepare": ["10-app", "20-late"],
        "emergency": [],
        "started": [],
        "recover": ["10-app", "30-again"],
    }
    assert data["stages"]["prepare"][0] == {
        "id": 2,
        "hook": "10-app",
        "attempt": 1,
        "state": "ok",
        "reason": None,
        "started_at": "2026-11-21T12:00:01.123Z",
        "ended_at": "2026-11-21T12:00:03.623Z",
        "seconds": 2.5,
        "exit_status": 0,
        "output": "moved 3 VMs\n\nall \u00fcber\n",
        "void": None,
    }
    assert data["timeline"][0] == {
        "at": "2026-11-21T12:00:00.123Z",
        "what": "appeared",
        "detail": "Freeze by Platform hits this VM",
    }


def test_what_is_not_known_yet_is_null_in_the_data_and_words_in_the_text() -> None:
    unknown: dict[str, Any] = {
        "resource_type": None,
        "not_before": None,
        "description": None,
        "source": None,
        "duration": None,
        "resources": (),
    }
    record = make_record(1, event_type="", status="", **unknown)
    add_step(record, 2)
    (data,) = history.to_dict([record])
    assert (data["gone_at"], data["outcome"], data["closed_at"], data["approval"]["state"]) == (None, None, None, None)
    assert [data["stages"]["prepare"][0][name] for name in ("ended_at", "seconds", "exit_status")] == [None] * 3
    text = history.as_text([record])
    assert "unknown type by unknown source, no status\n" in text
    assert (
        "no VM by name\n" in text
        and "approval   none\n" in text
        and "outcome    not over\n" in text
        and "10-app  running" in text
    )


def test_approval_in_doubt_and_recovery_to_do_are_said() -> None:
    record = make_record(1)
    record.approval, record.approval_attempts = SENT, 1
    record.gone_at, record.outcome, record.occurrence = after(3), UNKNOWN, 2
    text = history.as_text([record])
    assert "event E-1, life 2\n" in text
    assert "sent, not known to have arrived, after 1 request\n" in text
    assert "unknown, over since 2026-11-21 12:00:03 UTC, recovery not done\n" in text


def test_times_are_utc_whatever_zone_they_came_in() -> None:
    record = make_record(1)
    record.timeline = [TimelineEntry(NOON.astimezone(timezone(timedelta(hours=-8))), "appeared", "")]
    assert "    2026-11-21 12:00:00.123  appeared\n" in history.as_text([record]) + "\n"
    assert history.to_dict([record])[0]["timeline"][0]["at"] == "2026-11-21T12:00:00.123Z"


EVIL = ["\x1b[2J\x1b]0;owned\x07", "\r\n2026 forged", "\x9b31m", "\u202egnp", "\x08\x7f\x00", "half \ud800"]


@pytest.mark.parametrize("evil", EVIL, ids=ascii)
def test_nothing_that_others_named_steers_a_terminal_or_forges_a_line(evil: str) -> None:
    record = make_record(
        1,
        "E" + evil,
        event_type=evil,
        status=evil,
        source=evil,
        description=evil,
        resources=(evil, evil),
        resource_type=evil,
    )
    step = add_step(record, 2, hook=evil)
    end_step(record, step, evil.replace("\n", ""))
    step.reason = record.approval_reason = record.approval_asked_by = record.outcome = evil
    record.gone_at = after(9)
    record.timeline.append(TimelineEntry(NOON, evil, evil))
    text = history.as_text([record])
    plain = history.as_text([make_plain()])
    assert all(character.isprintable() or character == "\n" for character in text)
    assert not any(line.startswith("2026 forged") for line in text.splitlines())
    assert len(text.splitlines()) in (
        len(plain.splitlines()),
        len(plain.splitlines()) + 1,
    )  # one more where the output has a line break
    text.encode("utf-8")
    written = json.dumps(history.to_dict([record]))
    assert all(character.isprintable() or character == "\x7f" for character in written)


def make_plain() -> EventRecord:
    record = make_record(1)
    end_step(record, add_step(record, 2), "x")
    record.gone_at = after(9)
    record.timeline.append(TimelineEntry(NOON, "word", "detail"))
    return record


def test_very_many_and_very_long_names_do_not_flood_the_text() -> None:
    record = make_record(
        1, "i" * 1_000_000, resources=tuple(f"vm-{number}" for number in range(5000)), description="d" * 1_000_000
    )
    record.timeline.append(TimelineEntry(NOON, "changed", "c" * 1_000_000))
    text = history.as_text([record])
    assert len(text) < 10_000
    assert "vm-19 and 4980 more" in text
    assert len(history.to_dict([record])[0]["event"]["resources"]) == 5000


@pytest.mark.parametrize(
    "seconds, text",
    [(0.04, "0 s"), (2.25, "2.2 s"), (59, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7380, "2 h 3 min")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    record = make_record(1)
    step = add_step(record, 2)
    end_step(record, step, "")
    step.ended_at = after(1 + seconds)
    assert f"after {text} " in history.as_text([record])
