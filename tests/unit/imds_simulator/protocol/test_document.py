# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The rendered document (docs/reference/scheduled-events.md 1.3, 1.4, 2.3, 3.2; T73, T76, T77)."""

from __future__ import annotations

import json
import locale
import re
import time

import pytest

from imds_simulator.api_versions import SCHEDULED_EVENTS_VERSIONS
from imds_simulator.model.world import new_event_id
from imds_simulator.protocol.document import Documents, document, http_date
from imds_simulator.scenario.knobs import change_knobs
from support.simulator.simulations import T0, document_at, make_simulation

ALL_TYPES = [
    {"name": kind, "type": kind, "resources": ["vm1"], "at": 0}
    for kind in ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
]
BASE = ["EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore"]


@pytest.mark.parametrize(
    "version, members",
    [
        ("2017-03-01", BASE),
        ("2017-08-01", BASE),
        ("2017-11-01", BASE),
        ("2019-01-01", BASE),
        ("2019-04-01", [*BASE, "Description"]),
        ("2019-08-01", [*BASE, "Description", "EventSource"]),
        ("2020-07-01", [*BASE, "Description", "EventSource", "DurationInSeconds"]),
    ],
)
def test_document_members_and_order_follow_the_version(version, members):
    shown = document_at(make_simulation(ALL_TYPES[0]), "vm1", 1, version)["Events"][0]
    assert list(shown) == members


@pytest.mark.parametrize(
    "version, hidden",
    [
        ("2017-03-01", {"Preempt", "Terminate"}),
        ("2017-08-01", {"Preempt", "Terminate"}),
        ("2017-11-01", {"Terminate"}),
        ("2019-01-01", set()),
        ("2020-07-01", set()),
    ],
)
def test_document_hides_types_newer_than_the_version(version, hidden):
    simulation = make_simulation(*ALL_TYPES)
    shown = {event["EventType"] for event in document_at(simulation, "vm1", 1, version)["Events"]}
    assert shown == {"Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"} - hidden
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"type_gating": "show"}))
    assert len(document_at(simulation, "vm1", 1, version)["Events"]) == 5


def test_document_has_the_same_event_in_all_versions():
    simulation = make_simulation(ALL_TYPES[0])
    shown = [document_at(simulation, "vm1", 1, version) for version in SCHEDULED_EVENTS_VERSIONS]
    assert len({document["Events"][0]["EventId"] for document in shown}) == 1
    assert len({document["DocumentIncarnation"] for document in shown}) == 1


def test_document_of_the_preview_version_has_underscores():
    assert document_at(make_simulation(ALL_TYPES[0]), "vm1", 1, "2017-03-01")["Events"][0]["Resources"] == ["_vm1"]
    classic = make_simulation(
        {**ALL_TYPES[0], "resources": ["Front_IN_0"]},
        groups={"old": {"kind": "cloud_service", "vms": {"Front_IN_0": {}}}},
    )
    assert document_at(classic, "Front_IN_0", 1, "2017-03-01")["Events"][0]["Resources"] == ["Front_IN_0"]


def test_document_resources_are_resource_names():
    simulation = make_simulation(
        ALL_TYPES[0], groups={"web": {"kind": "standalone", "vms": {"vm1": {"resource_name": "Ü nit_1"}}}}
    )
    assert document_at(simulation, "vm1", 1)["Events"][0]["Resources"] == ["Ü nit_1"]


def test_document_is_compact_json():
    simulation = make_simulation(ALL_TYPES[0])
    simulation.advance_to(T0)
    body = (
        Documents(simulation.world).document(simulation.world.scope_for(simulation.world.vms["vm1"]), "2020-07-01").body
    )
    assert body == json.dumps(json.loads(body), separators=(",", ":")).encode()
    assert body.startswith(b'{"DocumentIncarnation":2,"Events":[{"EventId":"')


def test_document_is_cached_until_a_change():
    simulation = make_simulation(ALL_TYPES[0], incarnations=[{"group": "web", "at": 1000, "to": 1}])
    documents, scope = Documents(simulation.world), simulation.world.scope_for(simulation.world.vms["vm1"])
    first = documents.document(scope, "2020-07-01")
    simulation.advance_to(T0)
    second = documents.document(scope, "2020-07-01")
    assert second is documents.document(scope, "2020-07-01")
    simulation.advance_to(T0 + 1000)
    third = documents.document(scope, "2020-07-01")
    assert len({first.etag, second.etag, third.etag}) == 3 and b'"DocumentIncarnation":1,' in third.body


@pytest.mark.parametrize("name", ["de_DE.UTF-8", "ru_RU.UTF-8", "fr_FR.UTF-8", "C"])
def test_not_before_is_english_gmt_in_any_locale(name, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        pass  # not installed here; the time zone is still foreign
    try:
        shown = document_at(make_simulation(ALL_TYPES[0]), "vm1", 1)["Events"][0]["NotBefore"]
    finally:
        locale.setlocale(locale.LC_ALL, before)
        monkeypatch.undo()
        time.tzset()
    assert shown == "Fri, 15 Jan 2027 08:15:00 GMT"


def test_not_before_once_started_is_blank():
    simulation = make_simulation(ALL_TYPES[0])
    assert document_at(simulation, "vm1", 900)["Events"][0]["NotBefore"] == ""


def test_not_before_can_be_iso_or_any_text():
    assert (
        document_at(make_simulation(ALL_TYPES[0], knobs={"not_before_format": "iso"}), "vm1", 1)["Events"][0][
            "NotBefore"
        ]
        == "2027-01-15T08:15:00Z"
    )
    odd = make_simulation({**ALL_TYPES[0], "not_before": "Mon, 32 Foo", "extra": {"Reason": 7}})
    assert document_at(odd, "vm1", 1)["Events"][0]["NotBefore"] == "Mon, 32 Foo"
    assert document_at(odd, "vm1", 1)["Events"][0]["Reason"] == 7


def test_event_ids_are_unique_upper_case_guids():
    made = {new_event_id() for _each in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch("[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", each) for each in made)


@pytest.mark.parametrize(
    "plan, description, duration",
    [
        ({"type": "Freeze"}, "Host server is undergoing maintenance.", 9),
        (
            {"type": "Reboot", "source": "User"},
            "Virtual machine is going to be restarted as requested by authorized user.",
            -1,
        ),
        ({"type": "Preempt"}, "", -1),
        ({"starts": "hardware_failure"}, "Virtual machine has encountered a failure.", -1),
        ({"type": "Freeze", "description": "", "duration": 0}, "", 0),
    ],
)
def test_event_defaults_of_description_and_duration(plan, description, duration):
    shown = document_at(make_simulation({"resources": ["vm1"], **plan}), "vm1", 1)["Events"][0]
    assert (shown["Description"], shown["DurationInSeconds"]) == (description, duration)


def test_http_date_after_the_year_9999_is_a_date():
    assert http_date(3e11) == http_date(253402300799) == "Fri, 31 Dec 9999 23:59:59 GMT"
    simulation = make_simulation({**ALL_TYPES[0], "notice": "36500d"}, begin=253402300000.0)
    simulation.advance_to(253402300001.0)
    (event,) = document(simulation.world, simulation.world.scope_for(simulation.world.vms["vm1"]), "2020-07-01")[
        "Events"
    ]
    assert event["NotBefore"] == "Fri, 31 Dec 9999 23:59:59 GMT"
