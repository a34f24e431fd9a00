# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about events of several placement groups (docs/reference/scheduled-events.md 3.1.9)."""

from __future__ import annotations

from imds_simulator.scenario.files import parse
from imds_simulator.scenario.groups import scope_key
from imds_simulator.scenario.placement_group_warnings import placement_group_warnings

GUID = "818281bc-a73f-5c57-ad82-68f7a6786f11"
VMS = {"a": {"placement_group": "one"}, "b": {"placement_group": "one"}, "c": {"placement_group": "two"}, "d": None}


def test_two_spellings_of_a_guid_are_one_placement_group() -> None:
    scenario = parse(
        "groups:\n  web:\n    kind: scale_set\n    vms:\n      web_0: {placement_group: " + GUID + "}\n"
        f"      web_1: {{placement_group: {GUID.upper()}}}\n",
        "f.yaml",
    )
    (group,) = scenario.groups
    assert {scope_key(group, vm, zone_split=False, placement_group_split=True) for vm in group.vms} == {
        f"web/placement group {GUID}"
    }
    vms = {"a": {"placement_group": GUID}, "b": {"placement_group": GUID.upper()}}
    data = {"groups": {"web": {"vms": vms}}, "events": [{"resources": ["a", "b"]}]}
    assert list(placement_group_warnings(data)) == []


def test_warning_about_an_event_of_several_placement_groups() -> None:
    events = [{"resources": names} for names in (["a", "b"], ["a", "c"], ["c", "d"], ["d"])]
    found = placement_group_warnings({"groups": {"web": {"vms": VMS}}, "events": events})
    assert [path for path, _text in found] == [("events", 1, "resources"), ("events", 2, "resources")]
