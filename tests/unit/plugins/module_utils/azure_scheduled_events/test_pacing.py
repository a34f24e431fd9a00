# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The retry table, the update window, and the limit of five requests a second."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    Imds,
    ImdsError,
    ImdsRefused,
    ImdsUnreachable,
    ImdsUnreadable,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.pacing import Pacer


class Time:
    """Seconds that pass only in sleep."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def pacer(time):
    # this client sends no request: the questions below are plain functions
    return Pacer(Imds("http://127.0.0.1:9"), 1.0, time.clock, time.sleep, lambda: 0.0)


def refused(status, retry_after=None):
    return ImdsRefused("refused", status=status, retryable=status not in (400, 401, 403, 405), retry_after=retry_after)


def delays(pacer, error, count, event_known=False):
    found = []
    for _attempt in range(count):
        pacer.failed(error)
        found.append(pacer.delay(event_known))
    return found


def test_delay_without_errors_is_the_interval(pacer):
    assert pacer.delay() == 1.0 and not pacer.is_outage()


PASSING = [refused(status) for status in (404, 408, 429, 500, 502, 503, 504)] + [
    ImdsUnreachable("x"),
    ImdsUnreadable("x"),
]


@pytest.mark.parametrize("error", PASSING)
def test_delay_after_retryable_errors_doubles_up_to_a_limit(pacer, error):
    assert delays(pacer, error, 7) == [1, 2, 4, 8, 16, 30, 30]


def test_delay_with_a_known_event_is_shorter_than_the_notice_of_a_preempt(pacer):
    assert delays(pacer, refused(500), 6, event_known=True) == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("status", [400, 401, 403, 405])
def test_delay_after_an_error_that_is_not_retryable_is_long(pacer, status):
    assert delays(pacer, refused(status), 3) == [30, 30, 30]
    assert delays(pacer, refused(status), 3, event_known=True) == [30, 30, 30]


def test_update_is_polled_every_ten_seconds_and_is_an_outage_after_seventy(pacer, time):
    assert delays(pacer, refused(410), 4) == [10, 10, 10, 10]
    time.now += 69
    assert not pacer.is_outage()
    time.now += 1
    assert pacer.is_outage()


def test_other_error_is_an_outage_at_once(pacer):
    pacer.failed(refused(500))
    assert pacer.is_outage()


def test_delay_of_retry_after_is_limited(pacer):
    assert delays(pacer, refused(429, 7.0), 2) == [7, 7]
    assert delays(pacer, refused(503, 3600.0), 1) == [30]
    assert delays(pacer, refused(503, 3600.0), 1, event_known=True) == [10]
    assert delays(pacer, refused(429, 0.0), 1) == [1]


def test_good_answer_ends_the_back_off(pacer):
    delays(pacer, refused(500), 5)
    pacer.succeeded()
    assert (pacer.delay(), pacer.errors_in_a_row, pacer.error) == (1.0, 0, None)
    assert delays(pacer, refused(500), 1) == [1]


def test_jitter_lengthens_the_delay_up_to_the_limit(time):
    pacer = Pacer(Imds("http://127.0.0.1:9"), 1.0, time.clock, time.sleep, lambda: 0.99)
    first, second, third = delays(pacer, refused(500), 3, event_known=True)
    assert 1 < first <= 1.25 and 2 < second <= 2.5 and 4 < third <= 5
    assert delays(pacer, refused(500), 5, event_known=True)[-1] == 10


def test_delay_after_an_error_is_not_shorter_than_a_slow_interval(time):
    pacer = Pacer(Imds("http://127.0.0.1:9"), 60.0, time.clock, time.sleep, lambda: 0.0)
    assert delays(pacer, refused(400), 1) == [60]


class Counting(Imds):
    """A client without a server whose questions count as a given number of requests."""

    sent = 0

    @property
    def requests_sent(self):
        return self.sent

    def ask(self, cost, within=None):
        self.sent += cost
        return within


@pytest.mark.parametrize("cost", [1, 2])
def test_requests_are_at_most_five_in_any_second(time, cost):
    imds = Counting("http://127.0.0.1:9")
    pacer = Pacer(imds, 1.0, time.clock, time.sleep)
    sent_at = []
    for _call in range(40):
        pacer.call(imds.ask, cost)
        sent_at.extend([time.now] * cost)
        time.now += 0.01
    assert all(later - earlier >= 1.0 for earlier, later in zip(sent_at, sent_at[5:]))


def test_wait_for_the_rate_limit_counts_against_the_limit_of_the_call(time):
    imds = Counting("http://127.0.0.1:9")
    pacer = Pacer(imds, 1.0, time.clock, time.sleep)
    for _call in range(4):
        assert pacer.call(imds.ask, 1, within=5.0) == 5.0
    assert pacer.call(imds.ask, 1, within=5.0) == 4.0
    assert time.slept == [1.0]


def test_result_of_a_call_is_noted(pacer):
    def broken(within=None):
        raise ImdsUnreadable("empty")

    with pytest.raises(ImdsError):
        pacer.call(broken)
    assert pacer.errors_in_a_row == 1 and pacer.error.args == ("empty",)
    assert pacer.call(lambda within=None: "fine") == "fine"
    assert pacer.errors_in_a_row == 0
