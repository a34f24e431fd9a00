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


def test_observe_preset_approves_nothing():
    decision = Policy.preset("observe").decide(event(source="User"), context())
    assert (decision.approval, decision.code, decision.hold) == ("never", "not_approving", False)


@pytest.mark.parametrize(
    "values, code",
    [
        ({"event_type": "Hibernate"}, "unknown_type"),
        ({"event_type": ""}, "unknown_type"),
        ({"status": "Paused"}, "unknown_status"),
        ({"source": "Robot"}, "unknown_source"),
        ({"resource_type": "Rack"}, "unknown_resource_type"),
    ],
)
def test_unknown_value_never_matches_a_rule_that_approves(values, code):
    decision = approving(found=event(**values))
    assert (decision.approval, decision.code) == ("never", code)


def test_unknown_value_matches_a_rule_that_does_not_approve():
    policy = Policy.from_mapping(
        {"rules": [{"name": "all", "when": {}, "approve": "now"}, {"name": "rest", "hold": True}]}
    )
    decision = policy.decide(event(event_type="Hibernate"), context())
    assert (decision.code, decision.hold) == ("not_approving", True)


def test_advice_matches_a_rule_that_names_it_or_has_no_approval():
    advice = event(event_type="SpotRebalanceRecommendation")
    everything = {"name": "all", "when": {}, "approve": "now"}
    asked = {"name": "asked", "when": {}, "approve": "manual"}
    watched = {"name": "watched", "when": {}}
    held = {"name": "held", "when": {}, "hold": True}
    named = {"name": "named", "when": {"type": "SpotRebalanceRecommendation"}, "approve": "now"}
    decisions = [
        Policy.from_mapping({"rules": rules}).decide(advice, context())
        for rules in ([everything], [asked], [everything, watched], [everything, held], [everything, named])
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


def test_rule_without_approve_approves_nothing():
    decision = Policy.from_mapping({"rules": [{"name": "watched"}]}).decide(event(), context())
    assert (decision.approval, decision.code) == ("never", "not_approving")


def test_decision_without_a_matching_rule_approves_nothing():
    policy = Policy.from_mapping({"rules": [{"when": {"type": "Reboot"}, "approve": "now"}]})
    decision = policy.decide(event(), context())
    assert (decision.approval, decision.code) == ("never", "no_rule")


def test_the_first_rule_that_matches_decides():
    policy = Policy.from_mapping(
        {
            "rules": [
                {"name": "1", "when": {"type": "Freeze"}, "hold": True},
                {"name": "2", "when": {}, "approve": "now"},
            ]
        }
    )
    assert policy.decide(event(), context()).code == "not_approving"
    assert policy.decide(event(event_type="Reboot"), context()).code is None


def test_all_conditions_of_a_rule_have_to_hold():
    assert holds({"type": "Freeze", "source": "Platform"})
    assert not holds({"type": "Freeze", "source": "User"})


@pytest.mark.parametrize(
    "when, expected",
    [
        ({"type": ["Reboot", "freeze"]}, True),
        ({"type": "Reboot"}, False),
        ({"status": "scheduled"}, True),
        ({"source": "User"}, False),
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


def test_conditions_on_earlier_observations():
    assert holds({"first_seen_age": {"min": "30s"}}, first_seen=NOON - timedelta(seconds=30))
    assert holds({"seen_started": True, "approved_by_us": True}, seen_started=True, approved_by_us=True)
    assert holds({"previous_type": "Freeze"}, event(event_type="Reboot"), previous_type="Freeze")
    assert holds({"prepared": "failed"}, prepared="failed")
    assert holds({"gate": ["a", "b"]}, gates={"a": True, "b": True})
    assert not holds({"gate": ["a", "b"]}, gates={"a": True, "b": False})


def test_an_unknown_duration_meets_no_bound():
    unknown = event(duration=None)
    assert not holds({"duration": {"min": 0}}, unknown)
    assert not holds({"duration": {"lt": 1000}}, unknown)
    assert holds({"duration": "unknown"}, unknown)


def test_a_scheduled_event_without_time_is_due_now():
    assert holds({"time_left": 0}, event(not_before=None))


def test_leader_is_the_next_by_name_after_takeover_after():
    when = {"is_leader": {"strategy": "first", "takeover_after": "60s"}}
    both = event(resources=("vm1", "VM0"))
    assert not holds(when, both, first_seen=NOON - timedelta(seconds=59))
    assert holds(when, both, first_seen=NOON - timedelta(seconds=60))
    assert not holds({"is_leader": "first"}, both, first_seen=NOON - timedelta(days=1))
    assert not holds(when, event(resources=("vm0",)), first_seen=NOON - timedelta(days=1))


@pytest.mark.parametrize(
    "resources, expected",
    [(("vm1", "_VM1"), True), (("vm1", "vm2"), False), (("vm1", ""), False), (("vm2",), False), ((), False)],
)
def test_only_me_is_false_for_a_second_vm(resources, expected):
    assert holds({"only_me": True}, event(resources=resources)) is expected


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


def test_a_started_event_is_never_due():
    decision = approving(found=event(status="Started", not_before=None))
    assert decision.code == "started"


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
