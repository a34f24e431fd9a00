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
    parse_status,
)

EVENT = {"event_id": "Ab-1", "event_type": "Reboot", "status": "Scheduled", "resources": ["vm1", "vm2"]}
SIGHTING = {"listed": True, "named": ["vm1", "vm2"], "readable": True}
OPEN = dict(EVENT, **SIGHTING, concerns_me=True, stage="prepare", prepared="ok", seconds_left=840, hooks=[])
STATUS = {
    "leader": "external",
    "resource_name": "vm1",
    "imds": {"ok": True, "confirmed": True},
    "records": {"ok": True},
    "events": [OPEN],
}
RECORD = {
    "event": EVENT,
    "first_status": "Scheduled",
    "first_seen": "T0",
    "concerned": True,
    "gone_at": None,
    "closed_at": None,
    "approval": {"state": None},
    "stages": {
        "prepare": [
            {"hook": "10-a", "state": "ok", "ended_at": "T1"},
            {"hook": "20-b", "state": "ok", "ended_at": "T2"},
        ]
    },
    "timeline": [{"at": "T0", "what": "appeared"}, {"at": "T3", "what": "started"}],
}


def status_of(**changes):
    return parse_status(0, json.dumps(dict(STATUS, **changes)), "")


def test_status_has_the_documented_members():
    found = status_of()
    assert found["resource_name"] == "vm1" and found["paused"] is None and found["imds_ok"] and found["records_ok"]
    assert found["confirmed"]
    (event,) = found["events"]
    assert {name: event[name] for name in SIGHTING} == SIGHTING
    assert event["key"] == "ab-1" and event["affects_self"] and event["prepared_state"] == "ok"
    assert event["not_before"] is None and event["seconds_left"] == 840


@pytest.mark.parametrize(
    ("exit_status", "output", "state"),
    [
        (3, '{"running": false}', "not_running"),
        (77, '{"error": "no"}', "not_permitted"),
        (78, "", "bad_configuration"),
        (2, "", "too_old"),
        (0, json.dumps({"events": []}), "too_old"),
        (0, json.dumps(dict(STATUS, events=[EVENT])), "too_old"),
        (1, '{"error": "the service does not answer"}', "no_answer"),
        (0, "[]", "no_answer"),
        (0, "<html>", "no_answer"),
        (0, "[" * 100000, "no_answer"),
        (-9, "", "no_answer"),
    ],
)
def test_status_that_cannot_be_read_has_a_code(exit_status, output, state):
    with pytest.raises(Unreadable) as error:
        parse_status(exit_status, output, "azure-scheduled-events: a detail\n")
    assert error.value.state == state and "; " in str(error.value)


def test_odd_members_become_null_and_entries_without_an_id_are_left_out():
    odd = dict(
        OPEN, resources=["vm1", 7], seconds_left="soon", hooks=[3, {"stage": "prepare", "state": "failed"}], stage=[]
    )
    odd.update(listed=1, named=["vm1", 7], readable=None)
    found = status_of(
        events=[odd, {"prepared": "ok"}, 7, None, dict(OPEN, event_id=5)], imds=None, records=[], paused=1
    )
    (event,) = found["events"]
    assert event["resources"] == ["vm1"] and event["seconds_left"] is None and event["stage"] is None
    assert event["failed_hooks"] == ["prepare/None failed"]
    assert (event["listed"], event["named"], event["readable"]) == (False, ["vm1"], False)
    assert not found["imds_ok"] and not found["confirmed"] and not found["records_ok"]
    # an odd value of paused counts as a pause
    assert found["paused"] == {"since": None, "until": None, "by": None, "reason": None}


@pytest.mark.parametrize("output", ["", "{}", "7", '[7, {"event": 7}, {"event": {}}]', "[" * 100000])
def test_history_that_is_odd_is_empty(output):
    assert parse_history(output) == []


def test_history_with_odd_records_has_what_is_readable():
    odd = {"event": EVENT, "stages": 5, "timeline": {"at": 1}, "approval": "x"}
    (event,) = parse_history(json.dumps([odd]))
    assert event["key"] == "ab-1" and event["started"] is None and event["recovered"] is None


def test_times_of_an_open_event_are_those_of_its_record():
    events = status_of()["events"]
    add_times(events, parse_history(json.dumps([dict(RECORD, closed_at="T9"), RECORD])))
    assert (events[0]["prepared"], events[0]["started"], events[0]["over"]) == ("T2", "T3", None)
    events = status_of(events=[dict(OPEN, prepared="running")])["events"]
    add_times(events, parse_history(json.dumps([RECORD])))
    assert events[0]["prepared"] is None


def test_times_of_an_earlier_occurrence_are_not_those_of_the_event():
    events = status_of()["events"]
    add_times(events, parse_history(json.dumps([dict(RECORD, closed_at="T9")])))
    assert events[0]["prepared"] is None


@pytest.mark.parametrize(("state", "recovered"), [("ok", "T9"), ("skipped", "T9"), ("failed", None)])
def test_closed_record_has_recovered_only_if_its_hooks_have(state, recovered):
    stages = {"prepare": [], "recover": [{"hook": "10-a", "state": state}]}
    (event,) = parse_history(json.dumps([dict(RECORD, stages=stages, gone_at="T8", closed_at="T9")]))
    assert (event["stage"], event["over"], event["recovered"]) == ("closed", "T8", recovered)
    assert event["not_recovered"] == ([] if recovered else ["10-a"])
    # a VM without prepare hooks is prepared when it knows the event
    assert event["prepared"] == "T0"


@pytest.mark.parametrize(
    ("changes", "goal", "reached"),
    [
        ({"prepared": "running"}, "prepared", False),
        ({"prepared": "none"}, "prepared", False),
        ({"prepared": "ok"}, "prepared", True),
        ({"prepared": "failed"}, "prepared", True),
        ({"prepared": "running", "stage": "started"}, "prepared", True),
        ({"prepared": "ok"}, "recovered", False),
        ({"stage": "recover"}, "recovered", False),
        ({"concerns_me": False, "stage": "watched"}, "recovered", True),
    ],
)
def test_wait_ends_when_the_goal_is_reached(changes, goal, reached):
    events = status_of(events=[dict(OPEN, **changes)])["events"]
    assert has_reached(goal, ["ab-1"], events, []) is reached
    assert has_reached(goal, [], events, []) is reached


def test_wait_for_an_event_that_the_daemon_does_not_know_continues():
    assert not has_reached("prepared", ["ab-1"], [], [])
    closed = parse_history(json.dumps([dict(RECORD, closed_at="T9")]))
    assert has_reached("prepared", ["ab-1"], [], closed)


def test_wait_ends_when_another_event_appears():
    events = status_of(events=[OPEN, dict(OPEN, event_id="Cd-2", prepared="running")])["events"]
    assert has_reached("recovered", ["ab-1"], events, [])
