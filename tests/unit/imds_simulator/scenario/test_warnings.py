# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about what Azure does not show (docs/reference/scheduled-events.md 3.1.9, 3.3)."""

from __future__ import annotations

import json
from typing import Any

from imds_simulator.instance_metadata.document import InstanceDocuments
from imds_simulator.keys import Path
from imds_simulator.scenario.warnings import scenario_warnings
from support.simulator.simulations import make_simulation, parse, placed

GUID = "818281bc-a73f-5c57-ad82-68f7a6786f11"


def warnings(groups: Any, **more: Any) -> dict[Path, str]:
    return dict(scenario_warnings(parse(json.dumps({"groups": groups, **more}))))


def instance_warnings(instance: Any, kind: str = "standalone") -> dict[Path, str]:
    """Return the end of the path -> text."""
    found = warnings({"web": {"kind": kind, "instance": instance, "vms": {"vm1": None}}})
    return {path[3:]: text for path, text in found.items()}


def test_warning_names_the_nearest_member() -> None:
    found = instance_warnings({"compute": {"vmsize": "A", "osProfile": {"computername": "x"}}, "netwrk": {}})
    assert set(found) == {("compute", "vmsize"), ("compute", "osProfile", "computername"), ("netwrk",)}
    assert "vmSize" in found["compute", "vmsize"] and "computerName" in found["compute", "osProfile", "computername"]
    of_vm = warnings({"web": {"vms": {"vm1": {"instance": {"compute": {"nme": "x"}}}}}})
    assert set(of_vm) == {("groups", "web", "vms", "vm1", "instance", "compute", "nme")}


def test_warning_of_another_shape() -> None:
    compute = {"publicKeys": "ssh-rsa one", "zone": [1], "plan": "none", "tagsList": ["a:b", {"nam": "a"}]}
    members: list[Path] = [("publicKeys",), ("zone",), ("plan",), ("tagsList", 0), ("tagsList", 1, "nam")]
    assert set(instance_warnings({"compute": compute})) == {("compute", *member) for member in members}
    assert set(instance_warnings({"compute": {"name": "x"}}, "cloud_service")) == {("compute",)}


def test_no_warning_about_a_complete_document() -> None:
    world = make_simulation(groups={"web": {"kind": "standalone", "vms": {"vm1": {}}}}).world
    document = InstanceDocuments(world.groups.values()).document("vm1", "2025-04-07")
    assert instance_warnings(document) == {} and instance_warnings({"compute": None}) == {}


def test_two_spellings_of_a_guid_are_one_placement_group() -> None:
    groups = placed("web", GUID, GUID.upper())
    world = make_simulation(groups=groups).world
    assert {world.scope_for(vm).key for vm in world.vms.values()} == {f"web/placement group {GUID}"}
    assert warnings(groups, events=[{"type": "Freeze", "resources": ["web_0", "web_1"]}]) == {}


def test_warning_about_an_event_of_several_placement_groups() -> None:
    resources = (["web_0", "web_1"], ["web_0", "web_2"], ["web_2", "web_3"], ["web_3"])
    events = [{"type": "Freeze", "resources": each} for each in resources]
    found = warnings(placed("web", "one", "one", "two", None), events=events)
    assert list(found) == [("events", 1, "resources"), ("events", 2, "resources")]


def test_warning_about_a_terminate_of_several_vms_or_of_another_notice() -> None:
    vms = {"vm1": {}, "vm2": {}}
    events = [
        {"type": "Terminate", "resources": ["vm1", "vm2"], "notice": "5m"},
        {"type": "Terminate", "resources": ["vm1"], "notice": "15m"},
        {"type": "Terminate", "resources": ["vm1"], "notice": "4m59s"},
        # the notice of the knob
        {"type": "Terminate", "resources": ["vm1"]},
        {"type": "Terminate", "resources": ["vm1"], "notice": "1s", "starts": "automatic_approval"},
        {"type": "Reboot", "resources": ["vm1", "vm2"], "notice": "1s"},
    ]
    found = warnings({"web": {"vms": vms}}, events=events, knobs={"notice_overrides": {"Terminate": "15m1s"}})
    assert list(found) == [("events", 0, "resources"), ("events", 2, "notice"), ("events", 3, "notice")]
