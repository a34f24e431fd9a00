# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events of the caller: which host each affects, when it is due, and when it is over."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.announced import (
    end_of,
    events_of,
    listings_of,
    read_announced,
    read_ended,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.preparation import Preparation

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=timezone.utc)
AT = "2026-11-23T12:00:00.000000Z"
EVENT = {
    "event_id": "Ab-1",
    "event_type": "Reboot",
    "status": "Scheduled",
    "resources": ["vm1", "vm2"],
    "not_before": "2026-11-23T12:15:00Z",
}


def change(kind="appeared", **more):
    return {"change": kind, "event": EVENT, **more}


def taken(host, *entries, vm_name=None, ended=(), types=None, within=1800, note=None):
    return events_of(host, vm_name, read_announced(entries), read_ended(list(ended)), types, within, note, NOW)


def keys(found):
    return [event["key"] for event in found["events"]]


def test_event_has_the_shape_that_the_role_reads():
    found = taken("vm1", change())
    (event,) = found["events"]
    assert found["available"] and found["announced"] and found["resource_name"] == "vm1" and found["note"] is None
    assert event == {
        **EVENT,
        "resource_type": None,
        "description": None,
        "source": None,
        "duration_seconds": None,
        "key": "ab-1",
        "due": True,
    }


@pytest.mark.parametrize(
    ("host", "more", "vm"),
    [
        ("VM2", {}, "vm2"),
        ("vm2.example.com", {}, "vm2"),
        ("b", {"hosts": ["a", "b"]}, "vm2"),
        ("b", {"hosts": ["b"], "unknown_resources": ["vm1"]}, "vm2"),
        ("c", {"hosts": ["a", "b"]}, None),
    ],
)
def test_host_is_found_by_the_mapping_of_the_caller_or_by_its_name(host, more, vm):
    found = taken(host, change(**more))
    assert found["available"] and keys(found) == (["ab-1"] if vm else [])
    assert found["resource_name"] == (vm or host)


def test_name_of_the_vm_wins_over_the_mapping():
    assert taken("b", change(hosts=["b", "a"]), vm_name="vm2")["resource_name"] == "vm2"


@pytest.mark.parametrize("vm_name", [None, "vm9"])
def test_host_of_the_mapping_without_a_vm_is_not_ignored(vm_name):
    found = taken("c", change(hosts=["a", "b", "c"]), vm_name=vm_name)
    assert not found["available"] and "set maintenance_vm_name" in found["reason"] and found["events"] == []


@pytest.mark.parametrize(
    ("status", "not_before", "due"),
    [
        ("Scheduled", "2026-11-23T12:15:00Z", True),
        ("Scheduled", "2026-11-23T13:15:00Z", False),
        ("Scheduled", None, True),
        ("Started", "2026-11-23T13:15:00Z", True),
    ],
)
def test_event_is_due_by_its_time(status, not_before, due):
    (event,) = taken("vm1", dict(EVENT, status=status, not_before=not_before))["events"]
    assert event["due"] is due


def test_advice_is_taken_only_if_its_type_is_named():
    advice = dict(EVENT, event_type="SpotRebalanceRecommendation")
    assert keys(taken("vm1", advice)) == [] != keys(taken("vm1", advice, types=["spotrebalancerecommendation"]))


def test_event_of_the_note_is_due_and_selected_whatever_its_type():
    note = {"events": [EVENT]}
    (event,) = taken("vm1", EVENT, note=note, types=["Freeze"], within=0)["events"]
    assert event["due"] and keys(taken("vm1", EVENT, types=["Freeze"])) == []


@pytest.mark.parametrize("entry", [change("gone"), dict(EVENT, status="Completed"), dict(EVENT, status="Canceled")])
def test_event_that_is_over_is_not_listed_again_by_a_late_delivery(entry):
    assert keys(taken("vm1", entry, change())) == []


def test_event_that_has_started_is_not_scheduled_again_by_a_late_delivery():
    (event,) = taken("vm1", {"change": "started", "event": dict(EVENT, status="Started")}, change())["events"]
    assert event["status"] == "Started"


def test_letter_case_of_known_values_does_not_count():
    written = {"event_type": "REBOOT", "status": "started", "source": "platform", "resource_type": "virtualmachine"}
    (event,) = taken("vm1", change(), dict(EVENT, **written), change())["events"]
    assert [event[name] for name in written] == ["Reboot", "Started", "Platform", "VirtualMachine"]
    (event,) = taken("vm1", dict(EVENT, event_type="Hibernate", status="waiting"))["events"]
    assert (event["event_type"], event["status"], event["source"]) == ("Hibernate", "waiting", None)


def test_event_of_maintenance_ended_is_not_listed():
    assert keys(taken("vm1", change(), ended=["AB-1"])) == []


@pytest.mark.parametrize(
    "entries", ["x", [{}], [{"event": None}], [change(other_events={})], [dict(EVENT, resources="vm1")]]
)
def test_unusable_entry_is_an_error_with_a_remedy(entries):
    with pytest.raises(ValueError, match=r"^maintenance_announced(\[0\])?: .*; pass "):
        read_announced(entries)


def test_unusable_further_event_of_a_change_is_an_error_that_names_it():
    with pytest.raises(
        ValueError, match=r"^maintenance_announced\[0\]\.other_events\[1\]: resources is null, not a list"
    ):
        read_announced([change(other_events=[EVENT, dict(EVENT, resources=None)])])


def test_further_events_of_a_change_are_listings_and_no_events_of_a_host():
    other = dict(EVENT, event_id="Ab-2", event_type="", resources=["vm2", "vm3"])
    late = dict(EVENT, resources=["vm4"])
    third = change(event=dict(EVENT, event_id="Ab-3"), other_events=[late])
    entries = [change(other_events=[other]), third]
    listings = {
        key: [event["resources"] for event in events] for key, events in listings_of(read_announced(entries)).items()
    }
    assert listings == {"ab-1": [["vm1", "vm2"], ["vm4"]], "ab-2": [["vm2", "vm3"]], "ab-3": [["vm1", "vm2"]]}
    assert keys(taken("vm2", *entries)) == ["ab-1", "ab-3"]
    assert set(listings_of(read_announced([change("gone", other_events=[other]), third]))) == {"ab-2", "ab-3"}


@pytest.mark.parametrize("entries", ["x", [1], [""]])
def test_unusable_id_of_an_ended_event_is_an_error(entries):
    with pytest.raises(ValueError, match=r"^maintenance_ended: .*; pass "):
        read_ended(entries)


def ended_of(events, *entries, ended=()):
    return end_of({"events": events}, read_announced(entries), read_ended(list(ended)), AT, Preparation())


def test_note_is_over_when_all_of_its_events_are():
    other = dict(EVENT, event_id="cd-2")
    events, pending = ended_of([EVENT, other], change("gone", outcome="canceled"))
    assert pending == "Reboot cd-2"
    assert [(event["over"], event["listed"]) for event in events] == [(AT, False), (None, True)]
    # the next run knows the first end from the note
    events, pending = ended_of(events, ended=["CD-2"])
    assert pending == "" and [event["over"] for event in events] == [AT, AT]


def test_completed_event_has_started_at_an_unknown_time():
    (event,) = ended_of([EVENT], change("gone", outcome="completed"))[0]
    assert (event["status"], event["started"], event["over"]) == ("Started", None, AT)


def test_cancelled_event_has_not_started():
    (event,) = ended_of([EVENT], change("gone", outcome="canceled"))[0]
    assert (event["status"], event["started"]) == ("Scheduled", None)


@pytest.mark.parametrize("outcome", ["completed", "canceled"])
def test_outcome_of_the_caller_remains_in_the_events(outcome):
    # a hook runner reports the same end later, and does not know its outcome
    event = ended_of([EVENT], change("gone", outcome=outcome), change("gone"))[0][0]
    assert event["outcome"] == outcome
    # the next run has it from the note
    assert ended_of([event], ended=["ab-1"])[0][0]["outcome"] == outcome
    assert ended_of([EVENT], ended=["ab-1"])[0][0]["outcome"] == "unknown"


def test_later_run_knows_that_the_host_was_prepared():
    prepared = Preparation("2026-11-23T11:58:00Z", "", ("Reboot",))
    terminate = dict(EVENT, event_id="cd-2", event_type="Terminate")
    note = {"events": end_of({"events": [EVENT, terminate]}, [], set(), AT, prepared)[0]}
    # a reboot is less severe
    assert "prepared" not in note["events"].pop()
    # it takes the event from the caller again, and does not prepare for a started one
    started = {"change": "started", "event": dict(EVENT, status="Started")}
    taken_again = taken("vm1", started, note=note)["events"]
    (event,) = ended_of(taken_again, change("gone", outcome="completed"))[0]
    assert (event["prepared"], event["outcome"]) == ("2026-11-23T11:58:00Z", "completed")
    # the next run shows no other time of the start
    assert ended_of([event])[0][0]["started"] is None


def test_event_that_has_started_and_is_gone_is_completed():
    started = {"change": "started", "event": dict(EVENT, status="Started")}
    assert ended_of(ended_of([EVENT], started)[0], change("gone"))[0][0]["outcome"] == "completed"
    assert ended_of([EVENT], change("gone"))[0][0]["outcome"] == "unknown"


def test_started_event_is_awaited():
    ((event,), pending) = ended_of([EVENT], {"change": "started", "event": dict(EVENT, status="Started")})
    assert pending == "Reboot Ab-1" and (event["started"], event["over"]) == (AT, None)


def test_id_in_a_reason_is_printable():
    odd = {**EVENT, "event_id": "a\x1b[2J\x9b"}
    reason = taken("b", {"change": "appeared", "event": odd, "hosts": ["b"]}, vm_name="vm3")["reason"]
    assert "a?[2J?" in reason and reason.isprintable()
