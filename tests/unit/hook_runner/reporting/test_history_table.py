# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history as a table, and events by the beginnings of their ids."""

from __future__ import annotations

import pytest

from hook_runner.event_ids import MAX_CANDIDATES, matching_ids
from hook_runner.records import RECOVER
from hook_runner.reporting.history import to_dict
from hook_runner.reporting.history_table import as_text, result
from support.daemon.record_factory import add_step, close_record, end_step, make_record


def test_each_event_is_a_line() -> None:
    done, other = make_record(1), make_record(2, "E-2-that-is-longer", event_type="")
    end_step(done, add_step(done, 3), "")
    end_step(done, add_step(done, 4, stage=RECOVER), "", "failed", 3)
    close_record(done)
    done.occurrence = 2
    other.affects_this_vm = False
    assert (
        as_text(to_dict([done, other]))
        == """\
EVENT               TYPE    FIRST SEEN (UTC)     OUTCOME    APPROVAL  PREPARED     RECOVERED
E-1 (life 2)        Freeze  2026-11-21 12:00:00  completed  accepted  ok           failed
E-2-that-is-longer  ?       2026-11-21 12:00:00  not over   none      not this VM  -"""
    )
    assert as_text([]) == "no events"


def test_what_others_named_neither_steers_a_terminal_nor_floods_it() -> None:
    record = make_record(1, "\x1b[2J" + "i" * 10000, event_type="\r\n" + "t" * 10000)
    lines = as_text(to_dict([record])).splitlines()
    assert len(lines) == 2 and lines[1].isprintable() and len(lines[1]) < 250


@pytest.mark.parametrize(
    "states, expected",
    [
        ([], "-"),
        (["ok", "skipped"], "ok"),
        (["ok", "running"], "running"),
        (["running", "timeout"], "timeout"),
    ],
)
def test_the_worst_hook_decides_the_result_of_a_stage(states: list[str], expected: str) -> None:
    assert result([{"hook": f"{number}", "state": state} for number, state in enumerate(states)]) == expected


def test_the_latest_run_of_a_hook_decides_the_result_of_a_stage() -> None:
    assert result([{"hook": "10-a", "state": "interrupted"}, {"hook": "10-a", "state": "ok"}]) == "ok"


@pytest.mark.parametrize(
    "asked, found",
    [
        ("abc", ["ABC"]),
        ("AB", ["ABC", "abcd"]),
        ("abcd", ["abcd"]),
        ("x", []),
        ("", []),
    ],
)
def test_an_id_or_its_beginning_stands_for_events(asked: str, found: list[str]) -> None:
    assert matching_ids(asked, ["ABC", "abcd", "ABC"]) == found
    assert len(matching_ids("a", [f"a{number}" for number in range(100)])) == MAX_CANDIDATES
