# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Instance metadata (docs/reference/scheduled-events.md 3.2, 3.3)."""

from __future__ import annotations

import json

import pytest

from imds_simulator.api_versions import COMPUTE_FIELD_SINCE, INSTANCE_VERSIONS
from imds_simulator.protocol.instance import instance_document
from support.simulator.raw_http import send_request
from support.simulator.simulations import make_simulation

V = "api-version=2021-02-01"


def get(sim, path, vm="vm1"):
    return send_request(sim.endpoints[vm], "/metadata/instance" + path)


def test_instance_tree_is_json_with_string_values(frozen_simulator):
    def leaves(value):
        if isinstance(value, dict):
            return [leaf for each in value.values() for leaf in leaves(each)]
        if isinstance(value, list):
            return [leaf for each in value for leaf in leaves(each)]
        return [value]

    answer = get(frozen_simulator, "?" + V, "pool_3")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert all(isinstance(leaf, str) for leaf in leaves(answer.json))
    assert answer.json["compute"]["count"] == "3" and answer.json["compute"]["on"] == "true"


def test_instance_name_equals_the_entry_in_resources(frozen_simulator):
    frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"]})
    name = get(frozen_simulator, "/compute/name?format=text&" + V)
    assert (name.status, name.body, name.headers["Content-Type"]) == (200, b"vm1", "text/plain; charset=utf-8")
    assert send_request(frozen_simulator.endpoints["vm1"]).json["Events"][0]["Resources"] == [name.body.decode()]


@pytest.mark.parametrize(
    "path, body",
    [
        ("/network/interface/0/ipv4/subnet/0/prefix?format=text&" + V, b"24"),
        ("/COMPUTE/VmSize?format=TEXT&" + V, b"Standard_D2s_v5"),
        ("/compute/name/?format=text&" + V, b"vm1"),
        ("/compute/zone?format=text&" + V, b""),
    ],
)
def test_instance_leaf_as_text_is_its_value(frozen_simulator, path, body):
    answer = get(frozen_simulator, path)
    assert (answer.status, answer.body) == (200, body)


@pytest.mark.parametrize(
    "path", ["/compute/name?" + V, "/compute/name?format=json&" + V, "/network/interface/0/macAddress?" + V]
)
def test_instance_leaf_without_format_text_is_400(frozen_simulator, path):
    answer = get(frozen_simulator, path)
    assert answer.status == 400 and "format" in answer.json["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/compute/nothing",
        "/nothing",
        "/network/interface/7",
        "/network/interface/x",
        "/compute/name/deeper",
        "/network/interface/-1",
        "/network/interface/%C2%B2",
        "/network/interface/" + "1" * 5000,
    ],
)
def test_instance_unknown_element_is_404(frozen_simulator, path):
    answer = get(frozen_simulator, path + "?format=text&" + V)
    assert answer.status == 404 and list(answer.json) == ["error"]


def test_instance_subtree_as_text_is_a_listing(frozen_simulator):
    assert get(frozen_simulator, "/network/interface/0/ipv4/subnet?" + V).json == [
        {"address": "10.0.0.0", "prefix": "24"}
    ]
    assert get(frozen_simulator, "?format=text&" + V).body == b"compute/\nnetwork/"
    assert get(frozen_simulator, "/network/interface?format=text&" + V).body == b"0/"
    assert get(frozen_simulator, "?format=yaml&" + V).status == 400


def test_instance_members_appear_with_their_version(frozen_simulator):
    for version in INSTANCE_VERSIONS:
        compute = get(frozen_simulator, "?api-version=" + version).json["compute"]
        assert {name for name in compute if COMPUTE_FIELD_SINCE.get(name, "") > version} == set()
    ages = {
        "name": "2017-04-02",
        "tags": "2017-08-01",
        "zone": "2017-12-01",
        "resourceId": "2019-03-11",
        "tagsList": "2019-06-04",
        "osProfile": "2020-07-15",
        "priority": "2020-12-01",
    }
    for member, since in ages.items():
        older = INSTANCE_VERSIONS[INSTANCE_VERSIONS.index(since) - 1]
        assert member in get(frozen_simulator, "/compute?api-version=" + since).json
        assert member not in get(frozen_simulator, "/compute?api-version=" + older).json
    assert get(frozen_simulator, "/compute/tagsList?api-version=2019-06-01").status == 404


def test_versions_route_needs_no_version(frozen_simulator):
    assert send_request(frozen_simulator.endpoints["vm1"], "/metadata/versions").json == {
        "apiVersions": list(INSTANCE_VERSIONS)
    }


def document(kind, name, **group):
    simulation = make_simulation(
        groups={"set": {"kind": kind, "vms": {name: {"fault_domain": 1, "update_domain": 4, "zone": 3}}, **group}}
    )
    return instance_document(simulation.world.groups["set"], simulation.world.vms[name])["compute"]


def test_instance_of_uniform_set_has_base_36_host_name():
    compute = document("scale_set", "set_862")
    assert compute["osProfile"]["computerName"] == "set0000ny"
    assert (compute["name"], compute["vmScaleSetName"], compute["zone"], compute["platformFaultDomain"]) == (
        "set_862",
        "set",
        "3",
        "1",
    )
    assert compute["resourceId"].endswith("/virtualMachineScaleSets/set/virtualMachines/862")
    assert len(compute["placementGroupId"]) == 36


def test_instance_of_flexible_set_names_its_scale_set():
    compute = document("scale_set", "set_1a2b3c4d", orchestration="flexible")
    assert compute["virtualMachineScaleSet"]["id"].endswith("/virtualMachineScaleSets/set")
    assert compute["resourceId"].endswith("/virtualMachines/set_1a2b3c4d") and compute["placementGroupId"] == ""


def test_instance_of_standalone_vm_names_no_scale_set():
    compute = document("standalone", "vm1")
    assert (compute["vmScaleSetName"], compute["placementGroupId"], compute["osProfile"]["computerName"]) == (
        "",
        "",
        "vm1",
    )


def test_instance_overrides_of_the_vm_win():
    simulation = make_simulation(
        groups={
            "web": {
                "kind": "standalone",
                "instance": {"compute": {"location": "north", "vmSize": "A"}},
                "vms": {"vm1": {"instance": {"compute": {"vmSize": "B"}, "network": None}}},
            }
        }
    )
    made = instance_document(simulation.world.groups["web"], simulation.world.vms["vm1"])
    assert (made["compute"]["location"], made["compute"]["vmSize"], made["network"]) == ("north", "B", "")
    assert json.loads(json.dumps(made)) == made
