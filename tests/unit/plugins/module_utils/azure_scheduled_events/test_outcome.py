# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of events that are over."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.outcome import (
    CANCELED,
    COMPLETED,
    OUTCOMES,
    UNKNOWN,
    outcome_of,
    reported_outcome,
)

hypothesis = pytest.importorskip("hypothesis", reason="ansible-test's own Python has no hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402


@pytest.mark.parametrize(
    "seen_started, reported, outcome",
    [
        (True, (), COMPLETED),
        (False, (), UNKNOWN),
        # Azure cannot cancel an event that has started
        (True, (CANCELED,), COMPLETED),
        (False, (CANCELED,), CANCELED),
        (False, (UNKNOWN, CANCELED, COMPLETED), CANCELED),
    ],
)
def test_outcome_of_an_event_that_is_over(seen_started, reported, outcome):
    assert outcome_of(seen_started, *reported) == outcome


@pytest.mark.parametrize(
    "status, outcome",
    [("Completed", COMPLETED), ("canceled", CANCELED), (" Cancelled ", CANCELED), ("Started", None), ("", None)],
)
def test_last_status_states_the_outcome(status, outcome):
    assert reported_outcome(status) == outcome


@given(st.booleans(), st.lists(st.sampled_from(OUTCOMES), max_size=4))
def test_event_is_canceled_only_if_that_was_reported_and_no_start_was_seen(seen_started, reported):
    outcome = outcome_of(seen_started, *reported)
    assert outcome in OUTCOMES
    assert (outcome == CANCELED) <= (CANCELED in reported and not seen_started)
    assert outcome_of(seen_started, UNKNOWN, *reported) == outcome_of(seen_started, outcome) == outcome


def test_words_are_those_that_hooks_and_rulebooks_read():
    assert OUTCOMES == ("completed", "canceled", "unknown")
