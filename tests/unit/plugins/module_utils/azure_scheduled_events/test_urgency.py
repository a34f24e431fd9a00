# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of any events, and for which event a preparation counts."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.event_types import (
    EVENT_TYPES,
    advises,
    severity,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.urgency import (
    CLOSE,
    Urgency,
    counts_for,
    most_severe,
    most_urgent_first,
)

hypothesis = pytest.importorskip("hypothesis", reason="ansible-test's own Python has no hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

KINDS = (*EVENT_TYPES, "Hibernate", "")
ADVICE = "SpotRebalanceRecommendation"


def order(*events: tuple[str, float, str]) -> str:
    """Return the keys in the order of urgency."""
    return "".join(own.key for own in most_urgent_first([Urgency(*each) for each in events], lambda own: own))


@pytest.mark.parametrize(
    "events, expected",
    [
        ([("Freeze", 60, "a"), ("Preempt", 91, "b")], "ab"),
        ([("Freeze", 60, "a"), ("Preempt", 90, "b")], "ba"),
        ([("Freeze", 60, "a"), ("Freeze", 50, "b")], "ba"),
        ([("Freeze", 60, "b"), ("Freeze", 60, "a")], "ab"),
        ([("Terminate", 61, "a"), ("Preempt", 60, "b")], "ba"),
        # a Preempt does not wait for the hooks of an event that may start at any moment
        ([("Terminate", 0, "a"), ("Freeze", -5, "b"), ("Preempt", 30, "c")], "cab"),
        ([("Freeze", 0, "a"), ("Redeploy", -900, "b")], "ba"),
        ([("Hibernate", 10, "a"), ("Freeze", 40, "b")], "ba"),
        ([(ADVICE, 5, "a"), ("Hibernate", 0, "b"), (ADVICE, 0, "c"), ("Freeze", 9, "d")], "dbac"),
        # the window belongs to the nearest one that is left: c is close to b, and not to a
        ([("Freeze", 10, "a"), ("Freeze", 35, "b"), ("Reboot", 45, "c")], "acb"),
    ],
)
def test_order_of_events(events, expected):
    assert {order(*each) for each in itertools.permutations(events)} == {expected}


def test_without_events_nothing_is_first():
    assert most_urgent_first([], lambda own: own) == [] and most_severe([], str) is None


@pytest.mark.parametrize(
    "kinds, number",
    [
        (("Reboot", "FREEZE"), 0),
        (("Freeze", "Reboot", "reboot"), 2),
        ((ADVICE, "Freeze"), 1),
        (("Hibernate", ADVICE), 1),
    ],
)
def test_recovery_is_for_the_last_of_the_most_severe_events(kinds, number):
    assert most_severe(enumerate(kinds), lambda each: each[1]) == (number, kinds[number])


@pytest.mark.parametrize(
    "done, needed, counts",
    [
        ("Redeploy", "Freeze", True),
        ("freeze", "FREEZE", True),
        ("Freeze", "Redeploy", False),
        ("Preempt", "Terminate", True),
        ("Terminate", "Preempt", True),
        ("Freeze", ADVICE, True),
        ("Hibernate", "hibernate", True),
        ("Preempt", "Hibernate", False),
        ("Melt", "Hibernate", False),
        ("Hibernate", "Freeze", False),
        ("Hibernate", ADVICE, False),
    ],
)
def test_preparation_counts_for_an_event_that_is_not_more_severe(done, needed, counts):
    assert counts_for(done, needed) is counts


urgencies = st.builds(
    Urgency, st.sampled_from(KINDS), st.one_of(st.integers(-40, 200), st.floats(-1, 100)), st.uuids().map(str)
)


@given(st.lists(urgencies, max_size=12, unique_by=lambda own: own.key), st.randoms())
def test_order_is_that_of_the_rule_and_not_of_the_input(events, chance):
    found = most_urgent_first(events, lambda own: own)
    shuffled = list(events)
    chance.shuffle(shuffled)
    assert most_urgent_first(shuffled, lambda own: own) == found
    assert sorted(found) == sorted(events)
    for place, own in enumerate(found):
        rest = [each for each in found[place:] if advises(each.event_type) == advises(own.event_type)]
        assert not (advises(own.event_type) and any(not advises(each.event_type) for each in found[place:]))
        ahead = [each for each in rest if each.seconds_left > 0]
        if not ahead:
            assert all(severity(own.event_type) >= severity(each.event_type) for each in rest)
            continue
        nearest = min(each.seconds_left for each in ahead)
        assert 0 < own.seconds_left <= nearest + CLOSE
        assert all(
            severity(own.event_type) >= severity(each.event_type)
            for each in ahead
            if each.seconds_left <= nearest + CLOSE
        )


@given(st.sampled_from(KINDS), st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_preparation_that_counts_for_a_second_event_counts_for_its_third(one, two, three):
    assert counts_for(one, one)
    assert not (counts_for(one, two) and counts_for(two, three)) or counts_for(one, three)
