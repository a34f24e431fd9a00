# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions of rules; nothing is approved by accident."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    OwnNameUnknown,
    ScheduledEvent,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.conditions import (
    PolicyContext,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.policy import (
    Policy,
    PolicyError,
)

# a Saturday
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def event(**values):
    usual = ScheduledEvent(
        "A",
        "Freeze",
        "Scheduled",
        ("vm1",),
        "VirtualMachine",
        NOON + timedelta(minutes=15),
        "Host",
        "Platform",
        timedelta(seconds=9),
    )
    return usual._replace(**values)


def context(**values):
    return PolicyContext(now=NOON, own_name="vm1")._replace(**values)


def holds(when, found=None, **values):
    """Return True if a rule with this condition matches."""
    policy = Policy.from_mapping({"rules": [{"when": when, "hold": True}]})
    return policy.decide(found or event(), context(**values)).hold


def approving(setting="now", found=None, **values):
    policy = Policy.from_mapping({"rules": [{"name": "it", "when": {}, "approve": setting}]})
    return policy.decide(found or event(), context(**values))


SECONDS = timedelta(seconds=1)


@pytest.mark.parametrize(
    "found, rule, due",
    [
        (event(status="Started", source="User"), "running already", False),
        (event(event_type="Reboot", source="User", duration=None), "asked for by a user", True),
        (event(duration=8 * SECONDS), "short freeze", True),
        (event(duration=0 * SECONDS), "short freeze", True),
        (event(duration=9 * SECONDS), "everything else", False),
        (event(duration=None), "everything else", False),
        (event(source=None, duration=None), "everything else", False),
        (event(event_type="Redeploy", duration=5 * SECONDS), "everything else", False),
        (event(source="User", resources=("vm2",)), "everything else", False),
        (event(duration=5 * SECONDS, resources=("vm2", "VM1")), "short freeze", True),
        (event(event_type="Hibernate", source="User"), "everything else", False),
    ],
)
def test_documented_preset_approves_what_the_sample_does_for_this_vm(found, rule, due):
    decision = Policy.preset("documented").decide(found, context())
    assert decision.reason.startswith(f"rule {rule!r} ") and (decision.code is None) is due
    assert decision.approval == ("now" if due else "never")


ALL = {"name": "all", "when": {}, "approve": "now"}
REST = {"name": "rest", "hold": True}
FREEZES = {"when": {"type": "Freeze"}, "hold": True}


@pytest.mark.parametrize(
    "rules, changes, found",
    [
        # an unknown value never matches a rule that approves
        ([ALL], {"event_type": "Hibernate"}, ("never", "unknown_type", False)),
        ([ALL], {"event_type": ""}, ("never", "unknown_type", False)),
        ([ALL], {"status": "Paused"}, ("never", "unknown_status", False)),
        ([ALL], {"source": "Robot"}, ("never", "unknown_source", False)),
        ([ALL], {"resource_type": "Rack"}, ("never", "unknown_resource_type", False)),
        ([ALL, REST], {"event_type": "Hibernate"}, ("never", "not_approving", True)),
        ([ALL], {"status": "Started", "not_before": None}, ("now", "started", False)),
        ([{"name": "watched"}], {}, ("never", "not_approving", False)),
        ([{"when": {"type": "Reboot"}, "approve": "now"}], {}, ("never", "no_rule", False)),
        # the first rule that matches decides
        ([FREEZES, ALL], {}, ("never", "not_approving", True)),
        ([FREEZES, ALL], {"event_type": "Reboot"}, ("now", None, False)),
        ("observe", {"source": "User"}, ("never", "not_approving", False)),
    ],
)
def test_decision_of_a_policy(rules, changes, found):
    policy = Policy.preset(rules) if isinstance(rules, str) else Policy.from_mapping({"rules": rules})
    decision = policy.decide(event(**changes), context())
    assert (decision.approval, decision.code, decision.hold) == found


def test_advice_matches_a_rule_that_names_it_or_has_no_approval():
    advice = event(event_type="SpotRebalanceRecommendation")
    asked = {"name": "asked", "when": {}, "approve": "manual"}
    watched = {"name": "watched", "when": {}}
    held = {"name": "held", "when": {}, "hold": True}
    named = {"name": "named", "when": {"type": "SpotRebalanceRecommendation"}, "approve": "now"}
    decisions = [
        Policy.from_mapping({"rules": rules}).decide(advice, context())
        for rules in ([ALL], [asked], [ALL, watched], [ALL, held], [ALL, named])
    ]
    assert [(decision.code, decision.hold) for decision in decisions] == [
        ("no_rule", False),
        ("no_rule", False),
        ("not_approving", False),
        ("not_approving", True),
        (None, False),
    ]
    assert decisions[0].reason == "no rule names SpotRebalanceRecommendation, which only advises; nothing is approved"


def test_unknown_type_can_be_named_with_a_warning_but_not_approved():
    policy = Policy.from_mapping({"rules": [{"name": "new", "when": {"type": ["Freeze", "hibernate"]}, "hold": True}]})
    assert policy.decide(event(event_type="Hibernate"), context()).hold
    (text,) = policy.warnings
    assert text.startswith("policy: rules[0].when.type: event type 'hibernate' is unknown; no rule approves it")


@pytest.mark.parametrize("setting, may", [("now", True), ("after_prepare", True), ("manual", False)])
def test_may_approve_is_true_only_for_a_rule_that_approves(setting, may):
    assert Policy.from_mapping({"rules": [{"name": "it", "approve": setting}]}).may_approve() is may
    assert Policy.preset("documented").may_approve() and not Policy.preset("observe").may_approve()


def test_approval_times_are_those_of_the_rules():
    rules = [{"name": "watched"}, {"approve": "after_prepare"}]
    assert Policy.from_mapping({"rules": rules}).approval_times() == {"never", "after_prepare"}
    assert Policy.preset("observe").approval_times() == {"never"}


@pytest.mark.parametrize(
    "when, expected",
    [
        ({"type": ["Reboot", "freeze"]}, True),
        ({"type": "Reboot"}, False),
        ({"status": "scheduled"}, True),
        ({"source": "User"}, False),
        ({"type": "Freeze", "source": "Platform"}, True),
        ({"type": "Freeze", "source": "User"}, False),
        ({"duration": 9}, True),
        ({"duration": {"lt": 9}}, False),
        ({"duration": {"max": "9s"}}, True),
        ({"duration": {"gt": 8, "lt": 10}}, True),
        ({"duration": "unknown"}, False),
        ({"time_left": {"max": "15m"}}, True),
        ({"time_left": {"lt": 900}}, False),
        ({"description": "^Ho.t$"}, True),
        ({"description": "migration"}, False),
        ({"concerns_me": True}, True),
        ({"concerns_me": False}, False),
        ({"only_me": True}, True),
        ({"resource_count": 1}, True),
        ({"resource_count": {"min": 2}}, False),
        ({"resources": "VM*"}, True),
        ({"resources": ["db*", "vm?"]}, True),
        ({"resources": {"all": ["vm1"]}}, True),
        ({"resources": {"any": ["db*"]}}, False),
        ({"is_leader": "first"}, True),
        ({"first_seen_age": {"min": 1}}, False),
        ({"seen_started": False}, True),
        ({"approved_by_us": False}, True),
        ({"previous_type": "Freeze"}, False),
        ({"weekday": ["Sat", "sun"]}, True),
        ({"weekday": "Mon"}, False),
        ({"utc_hours": "12-13"}, True),
        ({"utc_hours": "11-12"}, False),
        ({"utc_hours": "22-13"}, True),
        ({"utc_hours": "22-6"}, False),
        ({"prepared": "none"}, True),
        ({"prepared": ["ok", "failed"]}, False),
        ({"gate": "spare_node"}, False),
        ({"api_version_min": "2019-08-01"}, True),
        ({"api_version_min": "2020-07-02"}, False),
    ],
)
def test_conditions(when, expected):
    assert holds(when) is expected


@pytest.mark.parametrize(
    "when, changes, known, expected",
    [
        ({"first_seen_age": {"min": "30s"}}, {}, {"first_seen": NOON - 30 * SECONDS}, True),
        ({"seen_started": True, "approved_by_us": True}, {}, {"seen_started": True, "approved_by_us": True}, True),
        ({"previous_type": "Freeze"}, {"event_type": "Reboot"}, {"previous_type": "Freeze"}, True),
        ({"prepared": "failed"}, {}, {"prepared": "failed"}, True),
        ({"gate": ["a", "b"]}, {}, {"gates": {"a": True, "b": True}}, True),
        ({"gate": ["a", "b"]}, {}, {"gates": {"a": True, "b": False}}, False),
        # an unknown duration meets no bound
        ({"duration": {"min": 0}}, {"duration": None}, {}, False),
        ({"duration": {"lt": 1000}}, {"duration": None}, {}, False),
        ({"duration": "unknown"}, {"duration": None}, {}, True),
        # a scheduled event without a time is due now
        ({"time_left": 0}, {"not_before": None}, {}, True),
        ({"only_me": True}, {"resources": ("vm1", "_VM1")}, {}, True),
        ({"only_me": True}, {"resources": ("vm1", "vm2")}, {}, False),
        ({"only_me": True}, {"resources": ("vm1", "")}, {}, False),
        ({"only_me": True}, {"resources": ("vm2",)}, {}, False),
        ({"only_me": True}, {"resources": ()}, {}, False),
    ],
)
def test_conditions_on_other_events_and_earlier_observations(when, changes, known, expected):
    assert holds(when, event(**changes), **known) is expected


def test_leader_is_the_next_by_name_after_takeover_after():
    when = {"is_leader": {"strategy": "first", "takeover_after": "60s"}}
    both = event(resources=("vm1", "VM0"))
    assert not holds(when, both, first_seen=NOON - timedelta(seconds=59))
    assert holds(when, both, first_seen=NOON - timedelta(seconds=60))
    assert not holds({"is_leader": "first"}, both, first_seen=NOON - timedelta(days=1))
    assert not holds(when, event(resources=("vm0",)), first_seen=NOON - timedelta(days=1))


@pytest.mark.parametrize("condition", ["concerns_me", "only_me"])
def test_without_own_name_a_rule_that_needs_it_is_an_error(condition):
    with pytest.raises(OwnNameUnknown):
        holds({condition: True}, own_name=None)
    with pytest.raises(OwnNameUnknown):
        holds({"is_leader": "first"}, own_name=None)


@pytest.mark.parametrize(
    "setting, values, approval, code",
    [
        ("now", {}, "now", None),
        ({}, {}, "now", None),
        ("manual", {"prepared": "ok"}, "manual", "manual"),
        ("after_prepare", {}, "after_prepare", "not_prepared"),
        ("after_prepare", {"prepared": "running"}, "after_prepare", "not_prepared"),
        ("after_prepare", {"prepared": "ok"}, "after_prepare", None),
        ("after_prepare", {"prepared": "failed"}, "after_prepare", "preparation_failed"),
        ("now", {"prepared": "failed"}, "now", "preparation_failed"),
        ({"when": "after_prepare", "on_failure": "approve"}, {"prepared": "failed"}, "after_prepare", None),
        (
            {"when": "after_prepare", "on_failure": "hold"},
            {"prepared": "failed"},
            "after_prepare",
            "preparation_failed",
        ),
        ({"delay": "30s"}, {"first_seen": NOON - timedelta(seconds=29)}, "now", "delay"),
        ({"delay": "30s"}, {"first_seen": NOON - timedelta(seconds=30)}, "now", None),
        ({"time_left": "14m"}, {}, "now", "time_left"),
        ({"time_left": "15m"}, {}, "now", None),
        ("now", {"approved_by_us": True}, "now", "already_approved"),
    ],
)
def test_when_an_approval_is_due(setting, values, approval, code):
    decision = approving(setting, **values)
    assert (decision.approval, decision.code) == (approval, code)
    assert decision.reason.count("\n") == 0 and "'it'" in decision.reason


@pytest.mark.parametrize(
    "rules, complaint",
    [
        ([], "at least one rule"),
        (["approve"], "expected a mapping"),
        ([{"wen": {}}], "unknown key 'wen'; did you mean when?"),
        ([{"when": {"tpye": "Freeze"}}], r"rules\[0\].when.tpye: unknown key 'tpye'; did you mean type?"),
        ([{"when": {"type": []}}], "empty list"),
        ([{"when": {"duration": {"below": 9}}}], "unknown bound 'below'"),
        ([{"when": {"duration": {}}}], "at least one of min"),
        ([{"when": {"duration": "long"}}], "expected seconds"),
        ([{"when": {"time_left": "unknown"}}], "expected seconds"),
        ([{"when": {"description": "("}}], "not a regular expression"),
        ([{"when": {"description": 5}}], "expected a regular expression"),
        ([{"when": {"resources": {"some": ["x"]}}}], "unknown key 'some'"),
        ([{"when": {"is_leader": "loudest"}}], "unknown strategy 'loudest'"),
        ([{"when": {"is_leader": {"takeover": 5}}}], "did you mean takeover_after"),
        ([{"when": {"utc_hours": "night"}}], "expected hours"),
        ([{"when": {"utc_hours": "24-3"}}], "expected hours"),
        ([{"when": {"prepared": "done"}}], "unknown state of preparation"),
        ([{"when": {"api_version_min": "new"}}], "expected an api-version"),
        ([{"do": ["approve"]}], r"rules\[0\].do: unknown key 'do'; there are: name, when, approve, hold"),
        ([{"aprove": "now"}], "unknown key 'aprove'; did you mean approve?"),
        ([{"approve": None}], "unknown time of approval None; there are: now, after_prepare, manual$"),
        ([{"approve": {"after": 5}}], r"rules\[0\].approve.after: unknown key 'after'"),
        ([{"approve": {"on_failure": "cry"}}], r"rules\[0\].approve.on_failure: unknown on_failure 'cry'"),
        ([{"approve": "now", "hold": True}], r"rules\[0\].hold: approve and hold exclude each other; remove one"),
        ([{"hold": "5m"}], r"rules\[0\].hold: expected true or false, not '5m'"),
        ([{"when": {"description": "a{99999999999999999999}"}}], "not a regular expression"),
    ],
)
def test_invalid_rule_is_refused_with_its_location(rules, complaint):
    with pytest.raises(PolicyError, match=complaint):
        Policy.from_mapping({"rules": rules})


@pytest.mark.parametrize(
    "data, complaint",
    [
        ({}, "either preset or rules"),
        ({"preset": "observe", "rules": []}, "either preset or rules"),
        ({"rulez": []}, "did you mean rules?"),
        ("documented", "expected a mapping"),
    ],
)
def test_invalid_policy_is_refused(data, complaint):
    with pytest.raises(PolicyError, match=complaint):
        Policy.from_mapping(data)


def test_a_policy_may_name_a_preset_or_hold_rules():
    assert Policy.from_mapping({"preset": "documented"}).name == "documented"
    assert Policy.from_mapping({"name": "mine", "rules": [{"when": None}]}).name == "mine"
