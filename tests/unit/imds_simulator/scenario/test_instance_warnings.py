# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about values of ``instance`` that Azure does not show (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

from typing import Any

from imds_simulator.instance_metadata.document import InstanceDocuments
from imds_simulator.scenario.instance_warnings import instance_warnings
from support.simulator.simulations import make_simulation


def warnings(instance: Any, kind: str = "standalone") -> dict[tuple[Any, ...], str]:
    """Return the end of the path -> text."""
    found = instance_warnings({"groups": {"web": {"kind": kind, "instance": instance, "vms": {"vm1": None}}}})
    return {path[3:]: text for path, text in found}


def test_warning_names_the_nearest_member() -> None:
    found = warnings({"compute": {"vmsize": "A", "osProfile": {"computername": "x"}}, "netwrk": {}})
    assert set(found) == {("compute", "vmsize"), ("compute", "osProfile", "computername"), ("netwrk",)}
    assert "vmSize" in found["compute", "vmsize"] and "computerName" in found["compute", "osProfile", "computername"]


def test_warning_of_another_shape() -> None:
    found = warnings(
        {
            "compute": {
                "publicKeys": "ssh-rsa one",
                "zone": [1],
                "plan": "none",
                "tagsList": ["a:b", {"nam": "a"}],
            }
        }
    )
    assert set(found) == {
        ("compute", "publicKeys"),
        ("compute", "zone"),
        ("compute", "plan"),
        ("compute", "tagsList", 0),
        ("compute", "tagsList", 1, "nam"),
    }


def test_no_warning_about_a_complete_document() -> None:
    world = make_simulation(groups={"web": {"kind": "standalone", "vms": {"vm1": {}}}}).world
    document = InstanceDocuments(world.groups.values()).document("vm1", "2025-04-07")
    assert warnings(document) == {} and warnings({"compute": None}) == {}


def test_warning_about_compute_of_a_classic_vm() -> None:
    assert set(warnings({"compute": {"name": "x"}}, "cloud_service")) == {("compute",)}


def test_warning_about_a_vm_has_its_path() -> None:
    data = {"groups": {"web": {"vms": {"vm1": {"instance": {"compute": {"nme": "x"}}}}}}}
    ((path, _text),) = instance_warnings(data)
    assert path == ("groups", "web", "vms", "vm1", "instance", "compute", "nme")
