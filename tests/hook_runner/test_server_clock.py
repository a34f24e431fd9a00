# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The server's clock, as far as dates of whole seconds tell it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Optional

import pytest
from hook_runner.server_clock import ServerClock

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def date(seconds: float) -> datetime:
    """What IMDS says so long after noon."""
    return (NOON + timedelta(seconds=seconds)).replace(microsecond=0)


def clock() -> ServerClock:
    return ServerClock(lambda: 0.0, lambda: NOON - timedelta(days=1))


@pytest.mark.parametrize("phase", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("interval", [0.2, 0.999, 1.0, 1.003, 7.7])
def test_it_never_goes_back_and_is_right_within_a_second(phase: float, interval: float) -> None:
    ours, last = clock(), NOON - timedelta(seconds=1)
    for number in range(500):
        at = number * interval
        true = at + phase
        ours.heard(date(true), at)
        assert last <= ours.at(at) and abs((ours.at(at) - NOON).total_seconds() - true) <= 1
        last = ours.at(at)


def test_it_comes_nearer_to_the_truth_with_every_answer() -> None:
    ours = clock()
    for number in range(50):
        at = number * 1.01
        ours.heard(date(at + 0.9), at)
    assert 0 <= 0.9 + at - (ours.at(at) - NOON).total_seconds() < 0.02


@pytest.mark.parametrize("step", [-3600, -2, 2, 3600])
def test_it_follows_when_the_server_s_clock_is_set(step: int) -> None:
    ours = clock()
    ours.heard(date(0), 0.0)
    ours.heard(date(10 + step), 10.0)
    assert abs((ours.at(10.0) - NOON).total_seconds() - (10 + step)) <= 1


def test_the_next_process_on_this_host_goes_on_from_what_was_heard(tmp_path: Path) -> None:
    path, ours, at = str(tmp_path / "clock"), clock(), [100.0]
    ours.heard(date(0), 40.0)
    ours.remember(path)
    after = ServerClock(lambda: at[0], lambda: NOON - timedelta(days=1))
    after.recall(path)
    assert after.is_set() and after.now() == NOON + timedelta(seconds=60)


@pytest.mark.parametrize("left", ["", "x", "another-boot\n40.0\n2026-11-21T12:00:00+00:00\n", None])
def test_what_another_start_of_the_host_left_counts_for_nothing(tmp_path: Path, left: Optional[str]) -> None:
    path = tmp_path / "clock"
    if left is not None:
        path.write_text(left)
    ours = clock()
    ours.recall(str(path))
    assert not ours.is_set()


def test_an_answer_without_a_date_changes_nothing() -> None:
    ours = clock()
    ours.heard(None, 5.0)
    assert not ours.is_set() and ours.at(0.0) == NOON - timedelta(days=1)
