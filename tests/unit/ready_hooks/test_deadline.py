# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from ready_hooks.core.deadline import Deadline
from support.ready_hooks.clock import Clock


def test_deadline_reserves_a_tenth_but_at_most_three_seconds() -> None:
    clock = Clock()
    assert Deadline(10, clock, clock.sleep).left() == 9.0
    assert Deadline(600, clock, clock.sleep).left() == 597.0


def test_left_after_the_end_is_zero() -> None:
    clock = Clock()
    deadline = Deadline(10, clock, clock.sleep)
    clock.now += 60
    assert deadline.left() == 0.0


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
