# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status and the history of a hook runner, also when their JSON is odd."""

from __future__ import annotations

import json

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._hook_runner_status import (
    Unreadable,
    add_times,
    has_reached,
    parse_history,
    parse_others,
    parse_status,
)

EVENT = {
    "event_id": "Ab-1",
    "event_type": "Reboot",
    "status": "Scheduled",
    "resources": ["vm1", "vm2"],
    "affects_this_vm": True,
    "prepared": "ok",
    "approval": None,
    "approval_error": None,
}
SIGHTING = {"listed": True, "named": ["vm1", "vm2"], "readable": True}
PRESENT = dict(EVENT, **SIGHTING, seconds_left=840, reason="it waits")
MAINTENANCE = {"id": "1", "phase": "prepared", "since": "T0", "not_recovered": [], "hooks": []}
STATUS = {
    "leader": "external",
    "vm": "vm1",
    "paused": None,
    "imds": {"ok": True, "confirmed": True},
    "records": {"ok": True},
    "maintenance": MAINTENANCE,
    "events": [PRESENT],
}
RECORD = {
    "id": "1",
    "ended": None,
    "given_up_by": None,
    "events": [dict(EVENT, gone_at=None, outcome=None)],
    "hooks": [],
    "timeline": [
        {"at": "T0", "what": "taken-up", "event": "Ab-1"},
        {"at": "T1", "what": "prepared", "event": "Cd-2"},
        {"at": "T2", "what": "prepared", "event": "Ab-1"},
        {"at": "T3", "what": "approved", "event": "Ab-1"},
        {"at": "T4", "what": "started", "event": "Ab-1"},
    ],
}
OVER = dict(RECORD, ended="T9", events=[dict(EVENT, gone_at="T8", outcome="completed")])
TIMES = ("prepared", "approved", "started", "over", "recovered")


def run_of(name, state, event="Ab-1", stage="prepare"):
    return {"stage": stage, "name": name, "state": state, "event": event}


def status_of(**changes):
    return parse_status(0, json.dumps(dict(STATUS, **changes)), "")


def history_of(*records):
    return parse_history(json.dumps(records))


def test_status_has_the_documented_members():
    found = status_of()
    assert found["resource_name"] == "vm1" and found["paused"] is None and found["imds_ok"] and found["records_ok"]
    assert found["confirmed"]
    assert found["maintenance"] == {"id": "1", "phase": "prepared", "since": "T0", "not_recovered": []}
    (event,) = found["events"]
    assert {name: event[name] for name in SIGHTING} == SIGHTING
    assert event["key"] == "ab-1" and event["affects_self"] and event["prepared_state"] == "ok"
    assert event["not_before"] is None and event["seconds_left"] == 840 and event["waiting"] == "it waits"


def test_failed_hooks_of_an_event_are_those_of_its_last_runs():
    runs = [
        run_of("10-a", "failed"),
        run_of("10-a", "ok"),
        run_of("20-b", "timeout"),
        run_of("30-c", "running"),
        run_of("40-d", "failed", event="Cd-2"),
        run_of("20-b", "ok", stage="recover"),
    ]
    (event,) = status_of(maintenance=dict(MAINTENANCE, hooks=runs))["events"]
    assert event["failed_hooks"] == ["prepare/20-b timeout"]


@pytest.mark.parametrize(
    ("exit_status", "output", "state"),
    [
        (3, '{"running": false}', "not_running"),
        (77, '{"error": "no"}', "not_permitted"),
        (78, "", "bad_configuration"),
        (2, "", "too_old"),
        (0, json.dumps({"events": [], "leader": "external"}), "too_old"),
        (1, '{"error": "the service does not answer"}', "no_answer"),
        (0, "[]", "no_answer"),
        (0, "[" * 100000, "no_answer"),
    ],
)
def test_status_that_cannot_be_read_has_a_code(exit_status, output, state):
    with pytest.raises(Unreadable) as error:
        parse_status(exit_status, output, "azure-scheduled-events: a detail\n")
    assert error.value.state == state and "; " in str(error.value)


def test_odd_members_become_null_and_entries_without_an_id_are_left_out():
    odd = dict(PRESENT, resources=["vm1", 7], seconds_left="soon", listed=1, named=["vm1", 7], readable=None)
    events = [odd, {"prepared": "ok"}, 7, None, dict(PRESENT, event_id=5)]
    hooks = [3, {"stage": "prepare", "event": "Ab-1", "name": [], "state": "failed"}]
    found = status_of(events=events, maintenance={"hooks": hooks, "phase": 5}, imds=None, records=[], paused=1)
    (event,) = found["events"]
    assert event["resources"] == ["vm1"] and event["seconds_left"] is None
    assert event["failed_hooks"] == ["prepare/[] failed"]
    assert (event["listed"], event["named"], event["readable"]) == (False, ["vm1"], False)
    assert not found["imds_ok"] and not found["confirmed"] and not found["records_ok"]
    # an odd value of paused counts as a pause, and one of maintenance as a maintenance
    assert found["paused"] == {"since": None, "until": None, "by": None, "reason": None}
    assert found["maintenance"] == {"id": None, "phase": None, "since": None, "not_recovered": []}
    assert status_of(maintenance=7)["maintenance"] is not None


@pytest.mark.parametrize("output", ["", "{}", "7", '[7, {"events": 7}, {"events": [{}]}]', "[" * 100000])
def test_history_that_is_odd_is_empty(output):
    assert parse_history(output) == parse_others(output) == []


def test_history_with_odd_records_has_what_is_readable():
    (event,) = history_of({"events": [EVENT], "hooks": 5, "timeline": {"at": 1}, "ended": []})
    assert event["key"] == "ab-1" and [event[name] for name in TIMES] == [None] * 5


def test_times_of_a_present_event_are_those_of_its_record():
    events = status_of()["events"]
    add_times(events, history_of(OVER, RECORD))
    assert [events[0][name] for name in TIMES] == ["T2", "T3", "T4", None, None]
    # the history was read later than the status
    events = status_of(events=[dict(PRESENT, prepared="running")])["events"]
    add_times(events, history_of(RECORD))
    assert events[0]["prepared"] is None
    (event,) = history_of(dict(RECORD, events=[dict(EVENT, prepared="failed")]))
    assert event["prepared"] is None


def test_times_of_an_earlier_occurrence_are_not_those_of_the_event():
    events = status_of()["events"]
    add_times(events, history_of(OVER))
    assert events[0]["prepared"] is None
    # it came back while the host recovered
    again = {"at": "T5", "what": "taken-up", "event": "Ab-1"}
    (event,) = history_of(dict(RECORD, timeline=[*RECORD["timeline"], again]))
    assert [event[name] for name in TIMES] == [None] * 5


def test_event_is_recovered_at_the_end_of_its_maintenance_unless_that_is_given_up():
    (event,) = history_of(OVER)
    assert (event["over"], event["recovered"], event["given_up_by"], event["outcome"]) == (
        "T8",
        "T9",
        None,
        "completed",
    )
    (event,) = history_of(dict(OVER, given_up_by="anna"))
    assert (event["over"], event["recovered"], event["given_up_by"]) == ("T8", None, "anna")


def test_event_without_a_maintenance_had_nothing_to_recover():
    (event,) = parse_others(json.dumps([dict(EVENT, prepared="none", gone_at="T8")]))
    assert [event[name] for name in TIMES] == [None, None, None, "T8", "T8"]


@pytest.mark.parametrize(
    ("step", "changes", "reached"),
    [
        ("prepared", {"events": [dict(PRESENT, prepared="running")]}, False),
        ("prepared", {"events": [dict(PRESENT, prepared="none")]}, False),
        ("prepared", {"events": [dict(PRESENT, prepared="ok")]}, True),
        ("prepared", {"events": [dict(PRESENT, prepared="failed")]}, True),
        ("prepared", {"events": [dict(PRESENT, prepared="running", status="Started")]}, True),
        ("recovered", {}, False),
        ("recovered", {"events": []}, False),
        ("recovered", {"maintenance": None}, False),
        ("recovered", {"maintenance": None, "events": [dict(PRESENT, affects_this_vm=False)]}, True),
    ],
)
def test_wait_ends_when_each_own_event_is_prepared_or_none_is_left_to_recover(step, changes, reached):
    known = status_of(**changes)
    assert has_reached(step, ["ab-1"], known, []) is reached
    assert has_reached(step, [], known, []) is reached


def test_wait_for_an_event_that_the_daemon_does_not_know_continues():
    known = status_of(events=[])
    assert not has_reached("prepared", ["ab-1"], known, history_of(RECORD))
    assert has_reached("prepared", ["ab-1"], known, history_of(OVER))


def test_wait_ends_when_another_event_appears():
    known = status_of(events=[PRESENT, dict(PRESENT, event_id="Cd-2", prepared="running")])
    assert has_reached("recovered", ["ab-1"], known, [])
