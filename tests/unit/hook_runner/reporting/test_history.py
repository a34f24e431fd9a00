# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history as JSON and as text."""

from __future__ import annotations

import json
from datetime import timedelta, timezone
from typing import Any

import pytest

from hook_runner.maintenance.record import NO_EVENT, Entry, EventRecord, HookRun, Maintenance, State, Vm
from hook_runner.record_files import Stored
from hook_runner.records import ACCEPTED, FAILED, OK, PREPARE, RECOVER, RUNNING, SENT, TIMEOUT, Cause
from hook_runner.reporting.history import MAX_CANDIDATES, matching, matching_ids, to_data
from hook_runner.reporting.history_text import details, latest_result, overview, table_of_others
from support.daemon.record_factory import NOON, after, make_record


def record(event_id: str = "E-1", number: int = 11, **more: Any) -> EventRecord:
    made = make_record(number, event_id, **{"status": "Started", "not_before": None, **more})
    made.first_status = "Scheduled"
    return made


def run(number: int, title: str, state: str = OK, **more: Any) -> HookRun:
    stage, name = title.split("/")
    values = {"event": 11, "event_type": "Freeze", "attempt": 1, "began": after(1), "limit": after(600), **more}
    ended = None if state == RUNNING else values.pop("ended", after(3.5))
    return HookRun(number, stage, name, is_cut_short=False, boot="b", state=state, **{"ended": ended, **values})


def a_story() -> Maintenance:
    event = record()
    event.prepared, event.approval, event.approval_by, event.gone_at = "ok", ACCEPTED, "rule 1", after(60)
    return Maintenance(
        10,
        NOON,
        [event],
        [
            run(12, "prepare/10-app", exit_status=0, output="moved 3 VMs\n\nall \u00fcber\n"),
            run(
                13, "prepare/20-late", TIMEOUT, reason="its time limit was up", exit_status=-15, cause=Cause.TIME_LIMIT
            ),
            run(14, "recover/30-again", FAILED, attempt=2, exit_status=3, reason="exit status 3", output="no\n"),
        ],
        [Entry(NOON, "taken-up", "E-1", "Freeze Scheduled"), Entry(after(61), "closed", "", "recovered")],
        ended=after(61),
    )


def data(*maintenances: Maintenance, past: tuple[EventRecord, ...] = (), own_name: str = "web-0") -> dict[str, Any]:
    """Return the history after a trip through JSON, as the daemon and the command exchange it."""
    stored = Stored(list(maintenances), State(past=list(past), vm=Vm(own_name)), {}, None)
    found: dict[str, Any] = json.loads(json.dumps(to_data(stored)))
    return found


STORY = """\
maintenance 10
  began      2026-11-21 12:00:00 UTC
  ended      2026-11-21 12:01:01 UTC
  outcome    completed
  event      E-1
    what     Freeze by Platform, Started, expected to take 9 s
    VMs      web-0, web-1
    says     Host maintenance
    prepared ok
    approval accepted: rule 1
    outcome  completed, over since 2026-11-21 12:01:00 UTC
  prepare
    10-app  ok  after 2.5 s  exit status 0
      | moved 3 VMs
      |
      | all \u00fcber
    20-late  timeout  after 2.5 s  signal 15: its time limit was up
  recover
    30-again  failed  after 2.5 s  exit status 3  attempt 2
      | no
  timeline   (UTC)
    2026-11-21 12:00:00.123  taken-up  Freeze Scheduled
    2026-11-21 12:01:01.123  closed    recovered"""


def test_text_has_all_of_a_maintenance() -> None:
    assert details(data(a_story())["maintenances"]) == STORY


def test_data_have_the_members_of_the_contract() -> None:
    (found,) = data(a_story())["maintenances"]
    assert list(found) == ["id", "began", "ended", "outcome", "given_up_by", "events", "hooks", "timeline"]
    assert (found["id"], found["began"], found["ended"]) == (
        "10",
        "2026-11-21T12:00:00.123Z",
        "2026-11-21T12:01:01.123Z",
    )
    (event,) = found["events"]
    assert event == {
        **json.loads(json.dumps(record().event.as_dict())),
        "affects_this_vm": True,
        "first_seen": "2026-11-21T12:00:00Z",
        "prepared": "ok",
        "approval": "accepted",
        "approval_by": "rule 1",
        "approval_error": None,
        "first_type": "Freeze",
        "first_status": "Scheduled",
        "gone_at": "2026-11-21T12:01:00Z",
        "outcome": "completed",
    }
    assert found["hooks"][1] == {
        "stage": "prepare",
        "name": "20-late",
        "state": "timeout",
        "attempt": 1,
        "event": "E-1",
        "reason": "its time limit was up",
        "started": "2026-11-21T12:00:01.123Z",
        "ended": "2026-11-21T12:00:03.623Z",
        "seconds": 2.5,
        "exit_status": -15,
        "output": "",
        "cause": "time-limit",
    }
    assert found["timeline"][0] == {
        "at": "2026-11-21T12:00:00.123Z",
        "what": "taken-up",
        "event": "E-1",
        "detail": "Freeze Scheduled",
    }


def test_oldest_maintenance_is_first_and_the_open_one_last() -> None:
    opened = Maintenance(30, NOON, [record("E-3", 31)], [run(32, "prepare/10-app", RUNNING, event=31)])
    found = data(opened, Maintenance(20, NOON), a_story())["maintenances"]
    assert [each["id"] for each in found] == ["10", "20", "30"]
    assert (found[2]["ended"], found[2]["outcome"], found[2]["events"][0]["outcome"]) == (None, None, None)
    assert [found[2]["hooks"][0][name] for name in ("ended", "seconds", "exit_status", "cause")] == [None] * 4


def test_unknown_values_are_words_in_the_text() -> None:
    event = record(
        event_type="", status="", resources=(), resource_type=None, description=None, source=None, duration=None
    )
    event.approval = SENT
    text = details(data(Maintenance(10, NOON, [event], given_up_by="root"))["maintenances"])
    for words in (
        "ended      not over",
        "unknown type by unknown source, no status",
        "no VM by name",
        "sent, not known to have arrived",
        "root gave it up",
    ):
        assert words in text, words


def test_overview_has_a_line_for_each_event() -> None:
    other = record("E-4-of-others", NO_EVENT, resources=("web-9",), status="Scheduled")
    held = record("E-5", NO_EVENT, status="Scheduled")
    other.gone_at = held.gone_at = after(9)
    found = data(Maintenance(20, NOON, may_lack_events=True, ended=NOON), a_story(), past=(other, held))
    assert (
        overview(found["maintenances"], found["others"])
        == """\
MAINTENANCE  BEGAN (UTC)          EVENT    TYPE    OUTCOME    APPROVAL  PREPARED  RECOVERED
10           2026-11-21 12:00:00  E-1      Freeze  completed  accepted  ok        failed
20           2026-11-21 12:00:00  unknown  -       unknown    -         -         -

events without a maintenance
EVENT          TYPE    FIRST SEEN (UTC)     OUTCOME  APPROVAL  AFFECTS
E-4-of-others  Freeze  2026-11-21 12:00:00  unknown  none      others
E-5            Freeze  2026-11-21 12:00:00  unknown  none      this VM"""
    )
    assert (overview([], []), table_of_others([])) == ("no maintenances", "no events")


@pytest.mark.parametrize(
    ("asked", "ids"), [("10", ["10"]), ("1", ["10"]), ("e-1", ["10"]), ("e-", ["10", "20"]), ("x", []), ("", [])]
)
def test_id_of_a_maintenance_or_of_an_event_or_its_beginning_finds_all_that_match(asked: str, ids: list[str]) -> None:
    found = data(Maintenance(20, NOON, [record("E-2", 21)]), a_story(), past=(record("E-4", NO_EVENT),))
    assert [each["id"] for each in matching(asked, found["maintenances"])] == ids
    assert [each["event_id"] for each in matching("e-4", found["others"])] == ["E-4"]


EVIL = ["\x1b[2J\x1b]0;owned\x07", "\r\n2026 forged", "\x9b31m", "\u202egnp", "\x08\x7f\x00", "half \ud800"]


@pytest.mark.parametrize("evil", EVIL, ids=ascii)
def test_nothing_that_others_named_steers_a_terminal_or_forges_a_line(evil: str) -> None:
    event = record("E" + evil, event_type=evil, status=evil, source=evil, description=evil, resources=(evil, evil))
    event.approval_by = event.approval_error = event.first_type = evil
    maintenance = Maintenance(
        10, NOON, [event], [run(12, "prepare/10-app", reason=evil, output=evil)], [Entry(NOON, "changed", evil, evil)]
    )
    maintenance.given_up_by = evil
    found = data(maintenance, past=(event,))
    text = details(found["maintenances"]) + overview(found["maintenances"], found["others"])
    assert all(character.isprintable() or character == "\n" for character in text)
    assert not any(line.startswith("2026 forged") for line in text.splitlines())
    text.encode("utf-8")


def test_very_many_and_very_long_names_do_not_flood_the_text() -> None:
    names = tuple(f"vm-{number}" for number in range(5000))
    event = record("i" * 1_000_000, resources=names, description="d" * 1_000_000)
    found = data(Maintenance(10, NOON, [event], [], [Entry(NOON, "changed", "", "c" * 1_000_000)]))["maintenances"]
    assert len(details(found)) < 10_000 and "vm-19 and 4980 more" in details(found)
    assert max(map(len, overview(found, []).splitlines())) < 250
    assert len(found[0]["events"][0]["resources"]) == 5000


def test_times_are_utc_whatever_zone_they_came_in() -> None:
    west = NOON.astimezone(timezone(timedelta(hours=-8)))
    (found,) = data(Maintenance(10, west, [], [], [Entry(west, "closed", "", "")]))["maintenances"]
    assert found["began"] == found["timeline"][0]["at"] == "2026-11-21T12:00:00.123Z"


@pytest.mark.parametrize(
    "seconds, text",
    [(0.04, "0 s"), (2.25, "2.2 s"), (59, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7380, "2 h 3 min")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    runs = [run(12, "prepare/10-app", ended=after(1 + seconds), exit_status=0)]
    assert f"after {text} " in details(data(Maintenance(10, NOON, [], runs))["maintenances"])


@pytest.mark.parametrize(
    "runs, expected",
    [
        ([], "-"),
        ([("10-a", "ok"), ("20-b", "ok")], "ok"),
        ([("10-a", "ok"), ("20-b", "starting")], "running"),
        ([("10-a", "running"), ("20-b", "timeout")], "timeout"),
        ([("10-a", "interrupted"), ("10-a", "ok")], "ok"),
    ],
)
def test_first_hook_whose_latest_run_has_not_succeeded_decides_the_result_of_a_stage(
    runs: list[tuple[str, str]], expected: str
) -> None:
    hooks = [{"stage": RECOVER, "name": name, "state": state} for name, state in runs]
    hooks.append({"stage": PREPARE, "name": "10-a", "state": "failed"})
    assert latest_result(hooks, RECOVER) == expected


@pytest.mark.parametrize(
    "asked, found", [("abc", ["ABC"]), ("AB", ["ABC", "abcd"]), ("abcd", ["abcd"]), ("x", []), ("", [])]
)
def test_an_id_or_its_beginning_stands_for_events(asked: str, found: list[str]) -> None:
    assert matching_ids(asked, ["ABC", "abcd", "ABC"]) == found
    assert len(matching_ids("a", [f"a{number}" for number in range(100)])) == MAX_CANDIDATES
