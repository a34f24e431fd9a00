# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of an event for a host, and the hosts for which a run does not wait."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.outcomes import (
    Course,
    is_removed,
    outcome_of_maintenance,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.wait_rules import WaitRules

AT = "2026-11-21T12:00:00.000000Z"
LATER = "2026-11-21T12:05:00.000000Z"

COURSES = {
    "checked": {"checked": True},
    "failed": {"failed": True, "prepared": True, "outcome": "completed", "removed": True},
    "waiting": {"waits": True},
    "removed": {"removed": True, "prepared": True},
    "continues": {"continues": True, "prepared": True},
    "canceled": {"outcome": "canceled"},
    "unprepared": {"outcome": "completed"},
    "completed": {"outcome": "completed", "prepared": True},
    "unknown": {"prepared": True},
}


@pytest.mark.parametrize("outcome", COURSES)
def test_outcome_of_an_event(outcome):
    assert outcome_of_maintenance(Course(**COURSES[outcome])) == outcome


def terminate(**changes):
    return dict({"event_id": "Ab-1", "event_type": "Terminate", "status": "Scheduled"}, **changes)


BEGUN = {
    "started": ([terminate(status="Started")], (), {}),
    "seen started": ([terminate(started=AT)], (), {}),
    "approved": ([terminate()], ["ab-1"], {}),
    "NotBefore passed": ([terminate()], (), {"ab-1": AT}),
    "Preempt": ([terminate(event_type="Preempt", status="Started")], (), {}),
    "one of two": ([terminate(event_id="c", event_type="Freeze"), terminate(status="Started")], (), {}),
}
NOT_BEGUN = {
    "scheduled": ([terminate()], (), {"ab-1": LATER}),
    "unknown start": ([terminate()], (), {}),
    "another event approved": ([terminate()], ["other"], {}),
    "another type": ([terminate(event_type="Redeploy", status="Started")], ["ab-1"], {}),
    "over": (
        [terminate(status="Started", over=AT), terminate(event_id="c", event_type="Reboot", status="Started")],
        ["ab-1", "c"],
        {"ab-1": AT},
    ),
    "no event": ([], ["ab-1"], {}),
}


@pytest.mark.parametrize("reason", [*BEGUN, *NOT_BEGUN])
def test_host_is_removed_only_by_a_preempt_or_terminate_that_has_begun(reason):
    events, approved, starts_at = {**BEGUN, **NOT_BEGUN}[reason]
    assert is_removed(events, approved, starts_at, "2026-11-21T12:01:00.000000Z") is (reason in BEGUN)


def rules(plan, events=(), now="12:00:00", approved=()):
    variables = {
        "inventory_hostname": "a",
        "maintenance__plan": plan,
        "maintenance__decided": {"approved": dict.fromkeys(approved)},
        "maintenance__note": {"note": {"events": list(events)}},
    }
    moment = datetime.strptime(f"2026-11-21 {now}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
    return WaitRules(variables, 120, lambda: moment)


def test_wait_ends_when_a_waiting_event_has_to_be_prepared_for():
    waiting = {"event_id": "Cd-2", "event_type": "Reboot", "action": "wait"}
    found = rules({"yields_at": LATER, "events": [waiting], "hosts": {}})
    assert found.patience(3600) == 300 and found.patience(60) == 60
    assert "Reboot Cd-2" in found.continues_because()
    assert rules({"yields_at": AT, "events": [], "hosts": {}}, now="12:01:00").patience(3600) == 0
    assert rules({}).patience(3600) == 3600


def test_host_is_not_removed_before_it_was_silent_for_some_time():
    found = rules({"hosts": {"a": {"starts_at": {"ab-1": AT}}}}, [terminate()], now="12:01:00")
    assert found.has_removed(120, []) and not found.has_removed(119, [])
    # the events that the wait has seen are newer than the note
    assert not found.has_removed(120, [terminate(event_type="Freeze")])
    # another host of the run has approved the event
    assert rules({}, [terminate()], approved=["ab-1"]).has_removed(120, [])
    assert not rules({}, [terminate()]).has_removed(120, [])
