# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from support.ready_hooks.clock import Clock


def test_deadline_reserves_a_tenth_but_at_most_three_seconds() -> None:
    clock = Clock()
    assert Deadline(10, clock, clock.sleep).left() == 9.0
    assert Deadline(600, clock, clock.sleep).left() == 597.0


def test_wait_until_returns_true_as_soon_as_the_condition_holds() -> None:
    clock = Clock()
    assert Deadline(100, clock, clock.sleep).wait_until(lambda: clock.now >= 1001.0)
    assert clock.sleeps == [0.5, 0.5]


def test_wait_until_asks_a_last_time_at_the_end() -> None:
    clock = Clock()
    asked: list[float] = []

    def never() -> bool:
        asked.append(clock.now)
        return False

    assert not Deadline(100, clock, clock.sleep).wait_until(never, most=1.2)
    assert asked == [1000.0, 1000.5, 1001.0, 1001.2]


def test_wait_until_without_time_asks_once() -> None:
    clock = Clock()
    deadline = Deadline(0, clock, clock.sleep)
    assert deadline.wait_until(lambda: True)
    assert not deadline.wait_until(lambda: False)
    assert clock.sleeps == []


def test_wait_until_with_a_longer_limit_ends_with_the_run() -> None:
    clock = Clock()
    assert not Deadline(10, clock, clock.sleep).wait_until(lambda: False, most=60, interval=4)
    assert clock.now == 1009.0


def test_pause_returns_false_if_the_run_has_less_time() -> None:
    clock = Clock()
    deadline = Deadline(10, clock, clock.sleep)
    assert deadline.pause(5)
    assert not deadline.pause(5)
    assert clock.sleeps == [5, 4]


@pytest.mark.parametrize(
    ("results", "ends"), [([True], True), ([None, False, None, True], True), ([None, False], False)]
)
def test_retry_until_takes_an_error_for_not_yet(results: list[bool | None], ends: bool) -> None:
    clock = Clock()

    def condition() -> bool:
        result = results.pop(0) if len(results) > 1 else results[0]
        if result is None:
            raise HookError("server", "it does not answer")
        return result

    assert Deadline(10, clock, clock.sleep).retry_until(condition) is ends


def test_retry_until_raises_the_error_of_the_last_call() -> None:
    clock = Clock()

    def condition() -> bool:
        raise HookError("server", f"it does not answer at {clock.now - 1000:g}")

    with pytest.raises(HookError, match="at 3$"):
        Deadline(10, clock, clock.sleep).retry_until(condition, most=3)


def test_retry_until_leaves_time_for_the_last_call() -> None:
    clock = Clock()
    deadline = Deadline(10, clock, clock.sleep)
    left: list[float] = []

    def condition() -> bool:
        left.append(deadline.left())
        return False

    assert not deadline.retry_until(condition)
    assert left[-1] == 2


def test_wait_limit_leaves_a_tenth_of_two_to_five_seconds_but_at_most_a_half() -> None:
    clock = Clock()
    deadline = Deadline(603, clock, clock.sleep)
    assert (deadline.wait_limit(None), deadline.wait_limit(700), deadline.wait_limit(60)) == (595, 595, 60)
    for left, expected in ((30, 27), (10, 8), (3, 1.5), (0, 0)):
        clock.now = 1600.0 - left
        assert deadline.wait_limit(None) == expected


def test_after_the_end_nothing_is_left_and_the_answer_limit_is_half_a_second() -> None:
    clock = Clock()
    deadline = Deadline(10, clock, clock.sleep)
    assert (deadline.answer_limit(5), deadline.answer_limit(60)) == (5, 9)
    clock.now += 60
    assert (deadline.left(), deadline.answer_limit(5)) == (0.0, 0.5)
