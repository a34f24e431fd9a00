# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests impactful, scheduled and started."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.azure_imds.scheduled_events.plugins.test.impactful import impactful
from ansible_collections.azure_imds.scheduled_events.plugins.test.scheduled import scheduled
from ansible_collections.azure_imds.scheduled_events.plugins.test.started import started


def event(event_type="Reboot", seconds=None, status="Scheduled"):
    return {
        "event_id": "A",
        "event_type": event_type,
        "status": status,
        "resources": ["vm1"],
        "not_before": "2026-11-21T10:15:00Z",
        "duration_seconds": seconds,
    }


@pytest.mark.parametrize("event_type", ["Reboot", "Redeploy", "Preempt", "Terminate", "Reimage", ""])
@pytest.mark.parametrize("seconds", [None, 0, 9])
def test_impactful_is_true_for_every_type_but_freeze(event_type, seconds):
    assert impactful(event(event_type, seconds)) is True


@pytest.mark.parametrize(
    "seconds, limit, expected",
    [(0, 9, False), (8, 9, False), (9, 9, True), (None, 9, True), (-1, 9, True), (9, 30, False), (0, 0, True)],
)
def test_impactful_compares_the_duration_of_a_freeze(seconds, limit, expected):
    assert impactful(event("Freeze", seconds), limit) is expected
    assert impactful(event("freeze", seconds), limit) is expected


def test_impactful_has_the_limit_of_the_documented_sample():
    assert [impactful(event("Freeze", seconds)) for seconds in (8, 9)] == [False, True]


def test_advice_is_not_impactful():
    assert impactful(event("SpotRebalanceRecommendation")) is False


@pytest.mark.parametrize("limit", [-1, "9", None, True, float("nan")])
def test_impactful_refuses_a_limit_that_is_not_a_number(limit):
    with pytest.raises(AnsibleFilterError, match="impactful: freeze_limit is not a number"):
        impactful(event("Freeze", 5), limit)


@pytest.mark.parametrize(
    "status, expected", [("Scheduled", (True, False)), ("Started", (False, True)), ("?", (False, False))]
)
def test_scheduled_and_started_follow_the_status(status, expected):
    assert (scheduled(event(status=status)), started(event(status=status))) == expected


@pytest.mark.parametrize("test", [impactful, scheduled, started])
def test_tests_refuse_a_value_that_is_not_an_event(test):
    with pytest.raises(AnsibleFilterError, match=f"{test.__name__}: not an object; give an event"):
        test([event()])
