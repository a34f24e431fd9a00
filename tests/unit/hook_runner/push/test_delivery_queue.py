# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The next delivery and its time, after each kind of answer."""

from __future__ import annotations

import pytest

from hook_runner.push import delivery_queue
from hook_runner.push.delivery_queue import (
    ATTEMPTS_IF_REFUSED,
    DELIVERED,
    FAILED,
    LONGEST_PAUSE,
    LONGEST_RETRY_AFTER,
    REFUSED,
    SPOOL_FULL,
    TOO_OLD,
    Answer,
    DeliveryQueue,
)


def make(*keys: str, most: int = 10, longest: float = 1000.0) -> DeliveryQueue:
    """A queue with a delivery for each key, created at 0, 1, ..."""
    queue = DeliveryQueue(most, longest, lambda: 1.0)
    for number, key in enumerate(keys):
        queue.add(f"id{number}", key, float(number), b"{}")
    return queue


def next_number(queue: DeliveryQueue, now: float) -> int | None:
    delivery = queue.next(now)
    return None if delivery is None else delivery.number


def test_deliveries_go_out_in_their_order() -> None:
    queue, sent = make("a", "b", "a"), []
    while (delivery := queue.next(0.0)) is not None:
        sent.append(delivery.number)
        assert queue.answered(Answer(delivery.number, 204), 0.0) == DELIVERED
    assert sent == [1, 2, 3] and queue.due_in(0.0) is None


@pytest.mark.parametrize("status", [None, 301, 401, 403, 404, 408, 429, 502, 503, 504])
def test_a_failure_of_the_endpoint_delays_all_with_growing_pauses_and_loses_none(status: int | None) -> None:
    queue, now = make("a", "b"), 0.0
    pauses = []
    for _attempt in range(9):
        assert queue.answered(Answer(1, status, "x"), now) == FAILED
        pause = queue.due_in(now)
        assert pause is not None and queue.next(now + pause - 0.01) is None
        pauses.append(pause)
        now += pause
        assert next_number(queue, now) == 1
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    queue.answered(Answer(1, 200), now)
    assert next_number(queue, now) == 2


@pytest.mark.parametrize("status", [500, 400, 413])
def test_a_failure_of_one_delivery_delays_only_its_event(status: int) -> None:
    queue = make("a", "b", "a")
    queue.answered(Answer(1, status, "x"), 0.0)
    assert next_number(queue, 0.0) == 2
    queue.answered(Answer(2, 200), 0.0)
    assert next_number(queue, 0.0) is None
    assert next_number(queue, 1.0) == 1


def test_refused_content_is_given_up_after_some_attempts_and_the_rest_goes_on() -> None:
    queue = make("a", "a")
    results = [queue.answered(Answer(1, 413, "x"), 0.0) for _attempt in range(ATTEMPTS_IF_REFUSED)]
    assert results == [FAILED] * (ATTEMPTS_IF_REFUSED - 1) + [REFUSED]
    assert next_number(queue, 0.0) == 2


def test_an_error_of_the_server_is_repeated_until_the_delivery_is_too_old() -> None:
    queue = make("a")
    assert {queue.answered(Answer(1, 500, "x"), 0.0) for _attempt in range(50)} == {FAILED}
    assert [*queue.drop_excess(1000.5, None)] == [TOO_OLD] and not queue.deliveries


@pytest.mark.parametrize(("asked", "pause"), [(0.0, 1.0), (7.0, 7.0), (1e9, LONGEST_RETRY_AFTER)])
def test_retry_after_is_obeyed_within_a_limit(asked: float, pause: float) -> None:
    queue = make("a")
    queue.answered(Answer(1, 503, "x", asked), 0.0)
    assert queue.due_in(0.0) == pause


def test_pauses_of_several_vms_differ() -> None:
    assert LONGEST_PAUSE > 0
    queue = DeliveryQueue(10, 10.0, lambda: 0.0)
    queue.add("id", "a", 0.0, b"")
    queue.answered(Answer(1, None, "x"), 0.0)
    assert queue.due_in(0.0) == delivery_queue.FIRST_PAUSE / 2


def test_the_oldest_are_dropped_but_never_the_one_that_is_being_sent() -> None:
    queue = make(*"abcd", most=2)
    dropped = queue.drop_excess(0.0, in_flight=1)
    assert {reason: [each.number for each in found] for reason, found in dropped.items()} == {SPOOL_FULL: [2, 3]}
    assert list(queue.deliveries) == [1, 4]
    assert queue.answered(Answer(2, 200), 0.0) == DELIVERED and list(queue.deliveries) == [1, 4]


def test_numbers_are_never_used_again() -> None:
    queue = make("a", "b")
    queue.load([])
    assert queue.add("id", "c", 0.0, b"").number == 3
