# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The rendered document (docs/reference/scheduled-events.md 1.3, 1.4, 2.3, 3.2; T73, T76, T77)."""

from __future__ import annotations

import dataclasses
import locale
import re
import time
from contextlib import suppress

import pytest

from imds_simulator.model.world import new_event_id
from support.simulator.simulations import NEWEST, document_at, make_simulation

TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
FREEZE = {"name": "e", "type": "Freeze", "resources": ["vm1"]}
BASE = ["EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore"]


def shown(plan=FREEZE, now=1, version=NEWEST, **more):
    """Return the event that vm1 sees ``now`` seconds after T0."""
    (event,) = document_at(make_simulation(plan, **more), "vm1", now, version)["Events"]
    return event


@pytest.mark.parametrize(
    "version, members, types",
    [
        ("2017-03-01", BASE, TYPES[:3]),
        ("2017-08-01", BASE, TYPES[:3]),
        ("2017-11-01", BASE, TYPES[:4]),
        ("2019-01-01", BASE, TYPES),
        ("2019-04-01", [*BASE, "Description"], TYPES),
        ("2019-08-01", [*BASE, "Description", "EventSource"], TYPES),
        ("2020-07-01", [*BASE, "Description", "EventSource", "DurationInSeconds"], TYPES),
    ],
)
def test_document_has_the_members_in_order_and_the_types_of_its_version(version, members, types):
    simulation = make_simulation(*({**FREEZE, "name": kind, "type": kind} for kind in TYPES))
    events = document_at(simulation, "vm1", 1, version)["Events"]
    assert list(events[0]) == members and {each["EventType"] for each in events} == {*types}
    simulation.apply_knobs(dataclasses.replace(simulation.world.knobs, type_gating="show"))
    found, newest = (document_at(simulation, "vm1", 1, each) for each in (version, NEWEST))
    assert [each["EventId"] for each in found["Events"]] == [each["EventId"] for each in newest["Events"]]
    assert found["DocumentIncarnation"] == newest["DocumentIncarnation"] and len(found["Events"]) == 5


@pytest.mark.parametrize(
    "group, version, name",
    [
        ({"kind": "standalone", "vms": {"vm1": {}}}, "2017-03-01", "_vm1"),
        ({"kind": "cloud_service", "vms": {"vm1": {"resource_name": "Front_IN_0"}}}, "2017-03-01", "Front_IN_0"),
        ({"kind": "standalone", "vms": {"vm1": {"resource_name": "Ü nit_1"}}}, "2020-07-01", "Ü nit_1"),
    ],
)
def test_document_resources_are_resource_names_with_an_underscore_in_the_preview(group, version, name):
    assert shown(groups={"web": group}, version=version)["Resources"] == [name]


@pytest.mark.parametrize("name", ["de_DE.UTF-8", "ru_RU.UTF-8", "fr_FR.UTF-8", "C"])
def test_not_before_is_english_gmt_in_any_locale(name, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    before = locale.setlocale(locale.LC_ALL)
    with suppress(locale.Error):  # not installed here; the time zone is still foreign
        locale.setlocale(locale.LC_ALL, name)
    try:
        not_before = shown()["NotBefore"]
    finally:
        locale.setlocale(locale.LC_ALL, before)
        monkeypatch.undo()
        time.tzset()
    assert not_before == "Fri, 15 Jan 2027 08:15:00 GMT"


def test_not_before_can_be_blank_or_iso_or_any_text():
    assert shown(now=900)["NotBefore"] == "", "it is Started"
    assert shown(knobs={"not_before_format": "iso"})["NotBefore"] == "2027-01-15T08:15:00Z"
    odd = shown({**FREEZE, "not_before": "Mon, 32 Foo", "extra": {"Reason": 7}})
    assert (odd["NotBefore"], odd["Reason"]) == ("Mon, 32 Foo", 7)


def test_event_ids_are_unique_upper_case_guids():
    made = {new_event_id() for _each in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch("[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", each) for each in made)


RESTART = "Virtual machine is going to be restarted as requested by authorized user."
FAILURE = "Virtual machine has encountered a failure."


@pytest.mark.parametrize(
    "plan, source, description, duration",
    [
        ({"type": "Freeze"}, "Platform", "Host server is undergoing maintenance.", 9),
        ({"type": "Reboot", "source": "User"}, "User", RESTART, -1),
        ({"type": "Preempt"}, "Platform", "", -1),
        ({"type": "Terminate"}, "User", "", -1),
        ({"starts": "hardware_failure"}, "Platform", FAILURE, -1),
        ({"type": "Freeze", "description": "", "duration": 0}, "Platform", "", 0),
    ],
)
def test_event_has_the_usual_source_description_and_duration(plan, source, description, duration):
    event = shown({"resources": ["vm1"], **plan})
    assert (event["EventSource"], event["Description"], event["DurationInSeconds"]) == (source, description, duration)
