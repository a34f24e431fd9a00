# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The server's clock, by dates of whole seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from hook_runner.clock import ServerClock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def date(seconds: float) -> datetime:
    """The time of IMDS so long after noon."""
    return (NOON + timedelta(seconds=seconds)).replace(microsecond=0)


def clock(host_is_off: float = 60.0) -> ServerClock:
    """Return a clock before the first answer, on a host whose own clock has this error."""
    return ServerClock(lambda: 0.0, lambda: NOON + timedelta(seconds=host_is_off))


def seconds(ours: ServerClock, at: float) -> float:
    """The time of the clock, as seconds after noon."""
    return (ours.at(at) - NOON).total_seconds()


@pytest.mark.parametrize("phase", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("interval", [0.2, 0.999, 1.0, 1.003, 7.7])
def test_it_never_goes_back_and_is_right_within_a_second(phase: float, interval: float) -> None:
    ours, last = clock(), NOON - timedelta(seconds=1)
    for number in range(500):
        at = number * interval
        true = at + phase
        ours.synchronise(date(true), at)
        assert last <= ours.at(at) and abs((ours.at(at) - NOON).total_seconds() - true) <= 1
        last = ours.at(at)


def test_it_comes_nearer_to_the_truth_with_every_answer() -> None:
    ours = clock()
    for number in range(50):
        at = number * 1.01
        ours.synchronise(date(at + 0.9), at)
    assert 0 <= 0.9 + at - (ours.at(at) - NOON).total_seconds() < 0.02


@pytest.mark.parametrize("step", [-2, 2])
def test_it_follows_a_small_step_of_the_server_s_clock_at_once(step: int) -> None:
    ours = clock()
    ours.synchronise(date(0), 0.0)
    assert ours.synchronise(date(10 + step), 10.0) is None
    assert abs(seconds(ours, 10.0) - (10 + step)) <= 1


@pytest.mark.parametrize("step", [-3600, -6, 6, 3600])
def test_it_follows_a_large_step_after_three_answers_that_agree(step: int) -> None:
    ours = clock()
    ours.synchronise(date(0), 0.0)
    for number in (1, 2):
        ours.synchronise(date(number + step), number)
        assert seconds(ours, number) == number and ours.is_doubtful
    ours.synchronise(date(3 + step), 3.0)
    assert seconds(ours, 3.0) == 3 + step and not ours.is_doubtful


@pytest.mark.parametrize("odd", [3600, -3600, 86400 * 365 * 20])
def test_one_odd_date_changes_nothing_and_is_warned_of_once(odd: int) -> None:
    ours, warnings = clock(), []
    for number in range(20):
        warnings.append(ours.synchronise(date(number + (odd if number in (3, 7, 8, 12) else 0)), number))
        assert abs(seconds(ours, number) - number) <= 1
    assert [number for number, text in enumerate(warnings) if text] == [3]
    assert f"{int(abs(odd))} s {'ahead of' if odd > 0 else 'behind'} what was expected" in str(warnings[3])


@pytest.mark.parametrize(
    "hours_ahead", [lambda number: 1 + number % 3, lambda number: number // 2 % 2], ids=["three", "two-backends"]
)
def test_dates_that_do_not_agree_with_each_other_are_never_believed(hours_ahead: Callable[[int], int]) -> None:
    ours = clock()
    ours.synchronise(date(0), 0.0)
    for number in range(1, 100):
        ours.synchronise(date(number + 3600 * hours_ahead(number)), number)
        assert seconds(ours, number) == number


@pytest.mark.parametrize("when", [0, 5])
@pytest.mark.parametrize("year", [1, 1970, 1999, 2201, 9999])
def test_a_date_outside_of_this_age_is_ignored(year: int, when: int) -> None:
    ours = clock()
    odd = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    warned = [ours.synchronise(odd if number >= when else date(number), number) for number in range(10)]
    assert abs(seconds(ours, 9.0) - 9) <= 61 and not ours.is_doubtful
    assert [number for number, text in enumerate(warned) if text] == [when]


@pytest.mark.parametrize("host_is_off", [-240, 240])
def test_the_first_answer_is_believed_if_the_host_s_clock_is_near(host_is_off: float) -> None:
    ours = clock(host_is_off)
    assert ours.synchronise(date(0), 0.0) is None and ours.at(0.0) == NOON


@pytest.mark.parametrize("host_is_off", [-3600, 3600])
def test_the_first_answer_needs_others_that_agree_if_the_host_s_clock_is_far(host_is_off: float) -> None:
    ours = clock(host_is_off)
    assert ours.doubts(date(0), 0.0) and f"{int(abs(host_is_off))} s" in str(ours.synchronise(date(0), 0.0))
    assert ours.synchronise(date(0), 0.1) is None
    assert seconds(ours, 0.2) == host_is_off + 0.2
    assert ours.synchronise(date(0), 0.2) is None
    assert seconds(ours, 0.2) == 0


def test_an_answer_without_a_date_changes_nothing() -> None:
    ours = clock()
    ours.synchronise(None, 5.0)
    assert ours.at(0.0) == NOON + timedelta(seconds=60)
