# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    EventDocument,
    OwnNameUnknown,
    ScheduledEvent,
    Selection,
)


def event(event_id, event_type="Freeze", status="Scheduled", resources=("vm1",), source="Platform"):
    return ScheduledEvent(event_id, event_type, status, resources, "VirtualMachine", None, "", source, None)


EVENTS = EventDocument(
    1,
    (
        event("A"),
        event("B", event_type="Reboot", source="User"),
        event("C", status="Started", resources=("vm1", "vm2")),
        event("D", resources=("vm2",), source=None),
    ),
)


def picked(own_name="vm1", **options):
    return "".join(found.event_id for found in Selection.parse(options).pick(EVENTS, own_name))


@pytest.mark.parametrize(
    "options, ids",
    [
        ({}, "ABC"),
        ({"affects": "any"}, "ABCD"),
        ({"affects": []}, "ABC"),
        ({"affects": ["vm2"]}, "CD"),
        ({"affects": ["self", "vm2"]}, "ABCD"),
        ({"affects": ["vm"]}, ""),
        ({"event_ids": ["b", "x"]}, "B"),
        ({"types": ["reboot"]}, "B"),
        ({"types": ["Freeze", "Reboot"], "statuses": ["Scheduled"]}, "AB"),
        ({"statuses": ["started"]}, "C"),
        ({"sources": ["User"]}, "B"),
        ({"event_ids": ["A"], "types": ["Reboot"]}, ""),
        ({"types": []}, ""),
    ],
)
def test_event_has_to_meet_all_options(options, ids):
    assert picked(**options) == ids


def test_another_own_name_selects_other_events():
    assert picked(own_name="vm2") == "CD"
    assert picked(own_name="vm3") == ""


@pytest.mark.parametrize(
    "affects, needed",
    [(None, True), ("self", True), (["SELF"], True), ("any", False), (["vm2"], False), (["vm2", "self"], True)],
)
def test_whether_the_own_name_is_needed(affects, needed):
    assert Selection.parse({"affects": affects}).needs_own_name is needed


def test_self_beside_names_has_any_letter_case():
    selection = Selection.parse({"affects": ["VM2", "SELF"]})
    assert selection.needs_own_name
    assert [found.event_id for found in selection.pick(EVENTS, "vm1")] == ["A", "B", "C", "D"]


def test_self_without_a_name_is_an_error():
    with pytest.raises(OwnNameUnknown):
        picked(own_name=None)
    assert picked(own_name=None, affects="any") == "ABCD"


def test_parsed_options_select_as_written():
    selection = Selection.parse({"types": "freeze", "sources": ["USER"], "affects": "any", "statuses": None})
    assert selection == Selection(None, ("freeze",), None, ("USER",), ("any",)) and selection.warnings() == []


def test_parsed_empty_list_selects_no_event():
    assert Selection.parse({"event_ids": []}).pick(EVENTS, "vm1") == []


def test_parsed_unknown_type_is_selected_with_a_warning():
    selection = Selection.parse({"types": ["Hibernate", "freeze"]})
    assert selection.types == ("Hibernate", "freeze")
    (text,) = selection.warnings()
    assert text.startswith("types: event type 'Hibernate' is unknown; no rule approves it")


def test_advice_is_selected_if_it_is_named_or_to_be_shown():
    advice = event("A", event_type="SpotRebalanceRecommendation")
    assert [
        selection.matches(advice, "vm1")
        for selection in (
            Selection(),
            Selection.parse({"sources": "Platform"}),
            Selection.parse({"types": "Reboot"}),
            Selection.parse({"types": "SpotRebalanceRecommendation"}),
            Selection.parse({"event_ids": advice.event_id}),
            Selection(advice=True),
        )
    ] == [False, False, False, True, True, True]


@pytest.mark.parametrize(
    "options, option",
    [
        ({"types": ["Rebot"]}, "types"),
        ({"statuses": ["Gone"]}, "statuses"),
        ({"sources": "Me"}, "sources"),
        ({"event_ids": [7]}, "event_ids"),
        # an empty variable of a playbook; as a name of nothing it would make each event absent
        ({"event_ids": [""]}, "event_ids"),
        ({"affects": " "}, "affects"),
    ],
)
def test_parsed_unusable_value_is_an_error_that_names_the_option(options, option):
    with pytest.raises(ValueError, match=f"^{option}: "):
        Selection.parse(options)
