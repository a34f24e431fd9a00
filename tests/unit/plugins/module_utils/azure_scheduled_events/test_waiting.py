# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a wait polls and ends: errors do not end it, and do not count as an empty document."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    EventDocument,
    Imds,
    ImdsRefused,
    ImdsUnreachable,
    ImdsUnreadable,
    ScheduledEvent,
    Tracker,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.pacing import Pacer
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.waiting import wait_for

EVENT = ScheduledEvent("A", "Freeze", "Scheduled", ("vm1",), "VirtualMachine", None, "", "Platform", None)
EMPTY = EventDocument(1, ())
FULL = EventDocument(2, (EVENT,))


class Script:
    """Gives the answers in turn, then the last one again and again; raises errors. Time passes only in sleep."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.now = 0.0
        self.polled_at = []
        self.limits = []
        self.pacer = Pacer(Imds("http://127.0.0.1:9"), 1.0, lambda: self.now, self.sleep, lambda: 0.0)

    def sleep(self, seconds):
        self.now += seconds

    def poll(self, within, dummy_may_hold):
        self.polled_at.append(self.now)
        self.limits.append(within)
        return self.pacer.call(self.answer)

    def answer(self, within=None):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer._replace(sent_at=self.now, sent_by=self.now)

    def wait(self, holds, timeout):
        return wait_for(self.pacer, self.poll, Tracker(), holds, timeout)


def has_events(seen):
    return bool(seen.events)


def is_empty(seen):
    return not seen.events


def test_state_that_holds_already_takes_one_poll():
    script = Script(FULL)
    waited = script.wait(has_events, 60)
    assert (waited.reached, waited.document, waited.elapsed, waited.errors) == (True, FULL, 0.0, 0)
    assert script.polled_at == [0.0]


def test_polls_come_once_an_interval():
    script = Script(EMPTY, EMPTY, EMPTY, FULL)
    assert script.wait(has_events, 60).reached
    assert script.polled_at == [0.0, 1.0, 2.0, 3.0]


def test_last_poll_is_at_the_end_of_the_time():
    script = Script(EMPTY)
    waited = script.wait(has_events, 2.5)
    assert not waited.reached and waited.elapsed == 2.5 and waited.document.incarnation == EMPTY.incarnation
    assert script.polled_at == [0.0, 1.0, 2.0, 2.5]


TROUBLE = [
    ImdsUnreachable("no route"),
    ImdsUnreadable("empty body"),
    ImdsRefused("gone", status=410),
    ImdsRefused("no", status=400, retryable=False),
]


@pytest.mark.parametrize("error", TROUBLE)
def test_error_is_not_the_end_of_an_event(error):
    script = Script(FULL, error, error, FULL, EMPTY)
    waited = script.wait(is_empty, 600)
    assert waited.reached and waited.errors == 2 and waited.last_error is error


def test_failing_imds_is_reported_but_does_not_end_the_wait():
    error = ImdsUnreachable("no route")
    script = Script(error)
    waited = script.wait(is_empty, 60)
    assert (waited.reached, waited.document, waited.last_error) == (False, None, error)
    assert waited.elapsed == 60 and waited.errors == len(script.polled_at)
    assert script.polled_at[:5] == [0, 1, 3, 7, 15]


def test_refused_version_is_raised_at_once():
    error = ImdsRefused("no such version", status=400, retryable=False, supported_versions=("2020-07-01",))
    with pytest.raises(ImdsRefused):
        Script(error).wait(has_events, 600)


def test_each_poll_gets_the_remaining_time():
    script = Script(EMPTY)
    script.wait(has_events, 2)
    assert script.limits == [2.0, 1.0, 0.1]


def test_doubt_is_ended_by_one_poll_which_may_come_after_the_time():
    script = Script(FULL, EMPTY)
    assert script.wait(is_empty, 2).reached
    assert (script.polled_at, script.limits) == ([0.0, 1.0, 3.0], [2.0, 1.0, 1.0])
