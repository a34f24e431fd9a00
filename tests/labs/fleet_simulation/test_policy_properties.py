# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Properties of all policies, for any event: hypothesis draws both, and shrinks a counterexample."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import EVENT_SOURCES, EVENT_STATUSES, RESOURCE_TYPES, ScheduledEvent
from azure_scheduled_events.event_types import EVENT_TYPES
from azure_scheduled_events.policy import PRESETS, Policy
from azure_scheduled_events.release import unknown_value
from maintenance_world.azure import EPOCH

VMS = ("vm1", "vm2", "vm3")


def known_or_not(known: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Return a value of the protocol twice as often as any other text."""
    return st.one_of(st.sampled_from(known), st.sampled_from(known), st.text(max_size=8))


EVENTS = st.builds(
    ScheduledEvent,
    event_id=st.just("E1"),
    event_type=known_or_not(tuple(EVENT_TYPES)),
    status=known_or_not(tuple(EVENT_STATUSES)),
    resources=st.lists(st.sampled_from(VMS), max_size=3, unique=True).map(tuple),
    resource_type=st.none() | known_or_not(tuple(RESOURCE_TYPES)),
    not_before=st.none() | st.integers(-100, 1000).map(lambda seconds: EPOCH + timedelta(seconds=seconds)),
    description=st.none(),
    source=st.none() | known_or_not(tuple(EVENT_SOURCES)),
    duration=st.none() | st.integers(0, 100).map(lambda seconds: timedelta(seconds=seconds)),
)
CONTEXTS = st.builds(
    PolicyContext,
    now=st.just(EPOCH),
    own_name=st.just("vm1"),
    first_seen=st.none() | st.integers(0, 900).map(lambda seconds: EPOCH - timedelta(seconds=seconds)),
    seen_started=st.booleans(),
    approved_by_us=st.booleans(),
    prepared=st.sampled_from(("none", "running", "ok", "failed")),
)
WHEN = st.fixed_dictionaries(
    {},
    optional={
        "concerns_me": st.booleans(),
        "type": st.lists(st.sampled_from(tuple(EVENT_TYPES)), min_size=1, max_size=3, unique=True),
        "source": st.sampled_from(tuple(EVENT_SOURCES)),
        "status": st.sampled_from(tuple(EVENT_STATUSES)),
    },
)
EFFECTS = st.sampled_from(
    (
        {},
        {"hold": True},
        {"approve": "now"},
        {"approve": "after_prepare"},
        {"approve": "manual"},
        {"approve": {"when": "now", "delay": "60s"}},
    )
)
RULES = st.lists(st.builds(lambda when, effect: {"when": when, **effect}, WHEN, EFFECTS), min_size=1, max_size=4)
POLICIES = st.one_of(
    RULES.map(lambda rules: Policy.from_mapping({"rules": rules})), st.sampled_from(tuple(PRESETS)).map(Policy.preset)
)


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(policy=POLICIES, event=EVENTS, context=CONTEXTS)
def test_policy_approves_only_what_it_knows(policy: Policy, event: ScheduledEvent, context: PolicyContext) -> None:
    decision = policy.decide(event, context)
    if decision.code is None:
        assert unknown_value(event) is None and event.status == "Scheduled" and not context.approved_by_us
        assert decision.approval in ("now", "after_prepare") and policy.may_approve()


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(policy=POLICIES, event=EVENTS, context=CONTEXTS)
def test_policy_after_preparation_waits_for_success(
    policy: Policy, event: ScheduledEvent, context: PolicyContext
) -> None:
    decision = policy.approving_after_preparation().decide(event, context)
    assert decision.code is not None or context.prepared == "ok"


def test_unknown_values_are_drawn() -> None:
    seen: dict[str, Any] = {}

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(event=EVENTS)
    def draw(event: ScheduledEvent) -> None:
        problem = unknown_value(event)
        seen["known" if problem is None else problem.code] = event

    draw()
    assert {"known", "unknown_type", "unknown_status", "unknown_source", "unknown_resource_type"} <= set(seen)
