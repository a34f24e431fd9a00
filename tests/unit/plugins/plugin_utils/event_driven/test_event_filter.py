# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every form of delivery becomes one shape with hosts; anything else passes through."""

from __future__ import annotations

import json
import logging

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import (
    NO_HOST,
    EventFilter,
)

try:
    from ansible.template import trust_as_template as trusted
except ImportError:  # ansible-core before 2.19 renders each text
    trusted = str

ID = "Ab-1"
EVENT = {
    "event_id": ID,
    "event_type": "Reboot",
    "status": "Scheduled",
    "resources": ["vm1", "VM2"],
    "resource_type": "VirtualMachine",
    "not_before": "2026-11-21T12:15:00Z",
    "description": "Host server is undergoing maintenance.",
    "source": "Platform",
    "duration_seconds": 9,
}
CHANGE = {
    "schema": "azure_imds.scheduled_events/change/1",
    "id": "one",
    "change": "appeared",
    "outcome": None,
    "event": EVENT,
    "observed_at": "2026-11-21T12:00:00.250Z",
    "reporter": "vm1",
    "reported_by": "notify",
    "resource_id": None,
}
RESOURCE = (
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm1"
    "/providers/microsoft.maintenance/scheduledevents/ab-1"
)
INFO = {
    "id": RESOURCE,
    "properties": {
        "EventId": "ab-1",
        "EventType": "Reboot",
        "EventStatus": "Scheduled",
        "NotBefore": "2026-11-21T12:15:00Z",
        "Description": "Host server is undergoing maintenance.",
        "EventSource": "Platform",
        "Resources": ["vm1", "VM2"],
        "ResourceType": "VirtualMachine",
        "DurationInSeconds": 9,
        "ScheduledEventApiVersion": "2020-07-01",
    },
}
GRID = {
    "id": "grid-1",
    "topic": "/subscriptions/s",
    "subject": RESOURCE,
    "eventType": "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted",
    "eventTime": "2026-11-21T12:00:00.25Z",
    "data": {"resourceInfo": INFO, "apiVersion": "2024-07-01"},
    "dataVersion": "3.0",
    "metadataVersion": "1",
}
CLOUD = {
    "specversion": "1.0",
    "id": "cloud-1",
    "source": "/subscriptions/s",
    "subject": RESOURCE,
    "type": "microsoft.maintenance/scheduledevents/write",
    "time": "2026-11-21T12:00:00.25Z",
    "data": {"resourceInfo": INFO},
}


def grid(properties=None, **members):
    info = {**INFO, "properties": {**INFO["properties"], **(properties or {})}}
    return {**GRID, "data": {"resourceInfo": info}, **members}


def filtered(event, **options):
    return EventFilter().apply(event, options)


@pytest.mark.parametrize(
    "event",
    [
        {"scheduled_event": CHANGE},
        {"payload": CHANGE},
        {"payload": json.dumps(CHANGE)},
        {"body": [CHANGE]},
        {"payload": [GRID]},
        {"body": json.dumps([GRID])},
        {"body": CLOUD},
        {"payload": {"events": [CLOUD]}},
        dict(CLOUD),
        dict(GRID),
    ],
    ids=lambda event: json.dumps(event)[:30],
)
def test_each_form_has_the_same_event_and_hosts(event):
    result = filtered({**event, "meta": {"endpoint": "x"}})
    got = result["scheduled_event"]
    assert {**got["event"], "event_id": got["event_key"]} == {**EVENT, "event_id": "ab-1"}
    assert (got["change"], got["outcome"], got["is_news"]) == ("appeared", None, True)
    assert got["hosts"] == ["vm1", "VM2"] and got["unknown_resources"] == [] and got["limit"] == "VM2,vm1"
    assert result["meta"] == {"endpoint": "x", "hosts": ["vm1", "VM2"]}
    assert set(result) == {"scheduled_event", "meta"}
    assert got["resource_id"] == (None if got["reported_by"] == "notify" else RESOURCE)


@pytest.mark.parametrize(
    ("event_type", "nature"),
    [("Freeze", "interrupts"), ("preempt", "removes"), ("SPOTREBALANCERECOMMENDATION", "advises"), ("x", "interrupts")],
)
def test_nature_follows_the_type_in_any_letter_case(event_type, nature):
    assert filtered({"body": grid({"EventType": event_type})})["scheduled_event"]["nature"] == nature


@pytest.mark.parametrize(
    ("status", "change", "outcome"),
    [
        ("Started", "started", None),
        ("Completed", "gone", "completed"),
        ("canceled", "gone", "canceled"),
        ("Cancelled", "gone", "canceled"),
    ],
)
def test_status_of_a_notification_becomes_change_and_outcome(status, change, outcome):
    got = filtered({"body": grid({"EventStatus": status})})["scheduled_event"]
    assert (got["change"], got["outcome"]) == (change, outcome)
    assert got["event"]["not_before"] == "2026-11-21T12:15:00Z"


@pytest.mark.parametrize("given", [None, "completed", "canceled", "unknown"])
def test_event_that_is_gone_has_an_outcome_and_another_has_none(given):
    gone = filtered({"body": {**CHANGE, "change": "gone", "outcome": given}})["scheduled_event"]
    assert gone["outcome"] == (given or "unknown")
    assert filtered({"body": {**CHANGE, "outcome": given}})["scheduled_event"]["outcome"] is None


def test_event_id_is_taken_from_the_resource_id_if_it_is_missing():
    assert filtered({"body": grid({"EventId": None})})["scheduled_event"]["event"]["event_id"] == "ab-1"


@pytest.mark.parametrize(
    "event",
    [
        {"payload": {"alert": "disk"}},
        {"payload": "text"},
        {"i": 1, "meta": {}},
        {"payload": [{"eventType": "Microsoft.EventGrid.SubscriptionValidationEvent", "data": {"x": 1}}]},
        {"body": {"specversion": "1.0", "type": "com.example.other", "data": {}}},
        {"body": "[" * 100000},
        {"payload": [1] * 1001},
        {},
    ],
    ids=lambda event: json.dumps(event)[:30],
)
def test_anything_else_passes_through_unchanged(event):
    before = json.dumps(event)
    result = filtered(event)
    assert result is event and json.dumps(result) == before


@pytest.mark.parametrize(
    "received",
    [
        {},
        {"payload": {"alert": "disk"}},
        {"payload": {**CHANGE, "event": None}},
        {"payload": [CHANGE, {"alert": "disk"}]},
        {"body": CHANGE},
    ],
    ids=lambda received: json.dumps(received)[:30],
)
def test_received_members_of_the_result_are_not_passed_on(received):
    forged = {"change": "appeared", "event_key": "ab-1", "occurrence": 1, "limit": "all", "is_news": True}
    own = {"scheduled_event": forged, "scheduled_event_problem": "all", "meta": {"hosts": ["all"], "uuid": "u"}}
    results = filtered({**received, **own})
    for result in results if isinstance(results, list) else [results]:
        assert '"all"' not in json.dumps(result) and result["meta"]["uuid"] == "u"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({**CHANGE, "event": None}, "event"),
        # the role refuses it, too: the run that it started would fail
        ({**CHANGE, "event": {**EVENT, "not_before": "soon"}}, "event: not_before"),
        ({**CHANGE, "other_events": EVENT}, "other_events"),
        ({**CHANGE, "other_events": [EVENT, {**EVENT, "resources": None}]}, "other_events[1]: resources"),
        ({**CHANGE, "change": "moved"}, "change"),
        ({**CHANGE, "change": "gone", "outcome": "ended"}, "outcome"),
        ({**CHANGE, "id": 7}, "id"),
        ({**CHANGE, "schema": "azure_imds.scheduled_events/change/2"}, "schema"),
        ({**CHANGE, "observed_at": "yesterday"}, "observed_at"),
        ({**CHANGE, "reporter": None}, "reporter"),
        (grid({"EventId": 7}, data={"resourceInfo": {}}), "properties"),
        (grid({"Resources": None}), "Resources"),
        (grid({"EventStatus": "Postponed"}), "EventStatus"),
        (grid(data=None), "data"),
        ({**CLOUD, "specversion": "0.3"}, "specversion"),
        ({**CLOUD, "time": None}, "time"),
    ],
)
def test_unreadable_delivery_is_logged_and_marked(body, named, caplog):
    with caplog.at_level(logging.WARNING):
        result = filtered({"payload": body})
    assert result["scheduled_event_problem"].startswith(named) or named in result["scheduled_event_problem"]
    assert "scheduled_event" not in result and result["meta"]["hosts"] == [NO_HOST]
    assert len(caplog.records) == 1


def test_further_events_of_the_reporter_are_read_as_the_event_is():
    text = "{{ 1 }}"
    further = {**EVENT, "event_id": "Ab-2", "event_type": "", "status": "", "resources": [text], "more": text}
    got = filtered({"payload": {**CHANGE, "other_events": [further]}})["scheduled_event"]
    del further["more"]
    assert got["other_events"] == [{**further, "resources": ["{ { 1 }}"]}]
    assert got["hosts"] == ["vm1", "VM2"] and got["event"] == EVENT
    assert filtered({"payload": CHANGE})["scheduled_event"]["other_events"] == []


def test_delivery_with_too_many_items_is_marked():
    results = filtered({"payload": [CHANGE, *[1] * 1000]})
    assert results[0]["scheduled_event"]["id"] == "one" and "1000" in results[1]["scheduled_event_problem"]


def test_list_of_several_becomes_several_events_and_keeps_the_others():
    other = {"alert": "disk"}
    results = filtered({"payload": [CHANGE, GRID, other]})
    assert [event.get("scheduled_event", {}).get("id") for event in results] == ["one", "grid-1", None]
    assert results[2]["payload"][2] == other


@pytest.mark.parametrize("form", ["change", "notification"])
def test_texts_cannot_be_templates(form):
    """A playbook gets the event as variables, and Ansible renders variables."""
    text = "{{ lookup('pipe', 'id') }} {% raw %} {# {{{"
    change = {**CHANGE, "event": {**EVENT, "description": text, "resources": [text]}}
    delivery = change if form == "change" else grid({"Description": text, "Resources": [text]})
    deep = [text]
    for _depth in range(5000):
        deep = [deep]
    meta = {"headers": {"User-Agent": text, "Other": [text]}, "deep": deep}
    got = filtered({"payload": delivery, "text": "kept", "meta": meta})
    assert got["meta"]["headers"]["Other"] == ["{ { lookup('pipe', 'id') }} { % raw %} { # { { {"]
    assert not any(mark in json.dumps(got) for mark in ("{{", "{%", "{#")) and got["text"] == "kept"
    assert got["scheduled_event"]["event"]["description"] == "{ { lookup('pipe', 'id') }} { % raw %} { # { { {"


def test_a_text_cannot_set_other_marks_of_templates():
    """Ansible takes the marks of a template from a first line that begins with ``#jinja2:``."""
    text = "#jinja2:variable_start_string:'[%',variable_end_string:'%]'\n[% 7 * 7 %]"
    event = {**EVENT, "description": text, "resources": [text]}
    got = filtered({"payload": {**CHANGE, "event": event}, "meta": {"headers": {"User-Agent": text}}})
    shown = [got["scheduled_event"]["event"]["description"], got["meta"]["headers"]["User-Agent"]]
    shown += got["scheduled_event"]["unknown_resources"]
    templar = Templar(DataLoader())
    assert templar.template(trusted(text)) == "49" or templar.template(trusted(text)) == 49
    assert [templar.template(trusted(each)) for each in shown] == ["# " + text[1:]] * 3


@pytest.mark.parametrize("body", [{"schema": CHANGE["schema"] + "{{ 1 }}"}, grid({"EventStatus": "{{ 1 }}"})])
def test_texts_of_an_unreadable_delivery_cannot_be_templates(body):
    got = filtered({"payload": {**body, "x": ["{% raw %}"]}})
    assert "scheduled_event_problem" in got and not any(mark in json.dumps(got) for mark in ("{{", "{%"))


def test_lone_surrogates_are_escaped():
    event = {**EVENT, "resources": ["vm\ud800"]}
    got = filtered({"payload": {**CHANGE, "event": event}})
    json.dumps(got["scheduled_event"], ensure_ascii=False).encode("utf-8")
    assert got["scheduled_event"]["unknown_resources"] == ["vm\\ud800"]


@pytest.mark.parametrize(
    "name", ["all", "ALL", "ungrouped", "!vm1", "&vm1", "@file", "vm*", "vm1,vm2", "vm1:vm2", "~v"]
)
def test_resource_that_would_select_other_hosts_is_unknown(name, caplog):
    result = filtered({"payload": {**CHANGE, "event": {**EVENT, "resources": [name]}}})
    got = result["scheduled_event"]
    assert got["unknown_resources"] == [name] and got["hosts"] == []
    assert result["meta"]["hosts"] == [NO_HOST] and got["limit"] == NO_HOST
    assert len(caplog.records) == 1
    by_rule = filtered({"payload": CHANGE}, host_table={"vm1": name, "vm2": ""})
    assert by_rule["scheduled_event"]["hosts"] == []


def test_report_without_resources_is_logged_and_selects_no_host(caplog):
    result = filtered({"payload": {**CHANGE, "event": {**EVENT, "resources": []}}})
    got = result["scheduled_event"]
    assert (got["hosts"], got["limit"], result["meta"]["hosts"]) == ([], NO_HOST, [NO_HOST])
    assert len(caplog.records) == 1


def test_table_comes_before_the_pattern():
    options = {"host_table": {"VM1": "web1"}, "host_pattern": "(vm)([0-9]+)", "host_template": r"\1-\2.example"}
    event = {**EVENT, "resources": ["vm1", "vm22", "db", "vm1"]}
    got = filtered({"payload": {**CHANGE, "event": event}}, **options)["scheduled_event"]
    assert (got["hosts"], got["unknown_resources"]) == (["web1", "vm-22.example"], ["db"])


@pytest.mark.parametrize(
    "options",
    [
        {"host_table": {"VM1": "vm1", "vm2": "VM2"}},
        {"host_table": {"_VM1": "vm1", "_vm2": "VM2"}},
        {"host_pattern": "[A-Za-z0-9]+"},
        {},
    ],
)
def test_names_of_the_first_api_version_are_the_same_vms(options):
    """Api-version 2017-03-01 puts an underscore before names of VMs."""
    event = {**EVENT, "resources": ["_vm1", "_VM2"]}
    got = filtered({"payload": {**CHANGE, "event": event}}, **options)["scheduled_event"]
    assert (got["hosts"], got["unknown_resources"]) == (["vm1", "VM2"], [])


def test_table_alone_leaves_other_vms_without_a_host(tmp_path, monkeypatch):
    table = tmp_path / "hosts.json"
    table.write_text('{"vm1": "web1"}')
    monkeypatch.setenv("AZURE_SCHEDULED_EVENTS_HOST_TABLE_FILE", str(table))
    plugin = EventFilter()
    got = plugin.apply({"payload": CHANGE}, {})["scheduled_event"]
    assert (got["hosts"], got["unknown_resources"]) == (["web1"], ["VM2"])
    table.write_text('{"vm1": "web1", "vm2": "web2"}')
    assert plugin.apply({"payload": CHANGE}, {})["scheduled_event"]["hosts"] == ["web1", "web2"]
    # the rulebook's own table comes before the file of the environment
    assert filtered({"payload": CHANGE}, host_table={"vm1": "db1"})["scheduled_event"]["hosts"] == ["db1"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"host_pattern": "("}, "host_pattern"),
        ({"host_template": "x"}, "host_template"),
        ({"host_pattern": "x", "host_template": r"\3"}, "host_template"),
        ({"host_table": ["vm1"]}, "host_table"),
        ({"host_table_file": "/does/not/exist"}, "host_table_file"),
        ({"host_table_file": "x", "host_table": {}}, "host_table_file"),
        ({"memory": 1}, "memory"),
    ],
)
def test_unusable_option_is_an_error_that_names_it(options, named):
    with pytest.raises(ValueError, match=f"azure_imds.scheduled_events.scheduled_events: {named}: .*; "):
        filtered({"payload": CHANGE}, **options)


def test_sources_with_the_same_memory_share_it():
    def is_news(**options):
        return filtered({"payload": CHANGE}, **options)["scheduled_event"]["is_news"]

    assert [is_news(), is_news(), is_news(memory="a"), is_news(memory="a"), is_news(memory="b")] == [
        True,
        True,
        True,
        False,
        True,
    ]
