# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Instance metadata: its documents, and elements over HTTP (docs/reference/scheduled-events.md 3.2, 3.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from imds_simulator.api_versions import INSTANCE_VERSIONS
from imds_simulator.instance_members import MEMBERS_SINCE
from imds_simulator.instance_metadata.document import InstanceDocuments
from support.repository import REPOSITORY
from support.simulator.raw_http import send_request
from support.simulator.simulations import make_simulation, placed

REFERENCE = REPOSITORY / "docs" / "reference" / "scheduled-events.md"
NEWEST = INSTANCE_VERSIONS[-1]
# one item in each list, so that the members of items can be seen
FULL = {
    "compute": {"tagsList": [{}], "storageProfile": {"dataDisks": [{}]}},
    "network": {
        "interface": [{"ipv4": {"ipAddress": [{}], "subnet": [{}]}, "ipv6": {"ipAddress": [{}]}, "macAddress": "1"}]
    },
}


def documents(**groups: Mapping[str, Any]) -> InstanceDocuments:
    return InstanceDocuments(make_simulation(groups=groups).world.groups.values())


def document(kind: str, name: str, version: str = NEWEST, **group: Any) -> Any:
    vm = {"fault_domain": 1, "update_domain": 4, "zone": 3}
    return documents(set={"kind": kind, "vms": {name: vm}, **group}).document(name, version)


def with_instance(instance: Mapping[str, Any], version: str = NEWEST) -> Any:
    return document("standalone", "vm1", version, instance=instance)


def leaves(value: Any, here: str = "") -> set[tuple[str, Any]]:
    """Return all values with their paths in the form of MEMBERS_SINCE."""
    if isinstance(value, dict):
        return {leaf for name, each in value.items() for leaf in leaves(each, f"{here}.{name}" if here else name)}
    if isinstance(value, list):
        return {leaf for each in value for leaf in leaves(each, here + "[]")}
    return {(here, value)}


@pytest.mark.parametrize("version", INSTANCE_VERSIONS)
def test_document_has_exactly_the_members_of_its_version(version: str) -> None:
    expected = {path for path, since in MEMBERS_SINCE.items() if since <= version}
    assert {path for path, _value in leaves(with_instance(FULL, version))} == expected


def test_document_has_the_members_of_real_vms_also_without_values() -> None:
    compute = document("standalone", "vm1", "2021-02-01")["compute"]
    # 32 members in the order of their names (reference 3.3.1)
    assert list(compute) == sorted(compute) and len(compute) == 32
    assert compute["plan"] == {"name": "", "product": "", "publisher": ""}
    assert compute["securityProfile"] == {"secureBootEnabled": "false", "virtualTpmEnabled": "false"}
    assert compute["storageProfile"]["osDisk"]["encryptionSettings"] == {"enabled": "false"}
    assert compute["storageProfile"]["resourceDisk"] == {"size": "0"}
    newest = document("standalone", "vm1")["compute"]
    assert (newest["host"], newest["hostGroup"], newest["virtualMachineScaleSet"]) == ({"id": ""},) * 3
    assert newest["extendedLocation"] == {"name": "", "type": ""}
    assert (newest["tagsList"], newest["storageProfile"]["dataDisks"]) == ([], [])


def test_reference_lists_every_member_with_its_version() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    text = text[text.index("Members of `compute`") : text.index('<a id="4"></a>')]
    listed = {}
    for version, names in re.findall(r"^\| (\d{4}-\d\d-\d\d) \| (.*) \|$", text, re.MULTILINE):
        for name in re.findall("`([^`]+)`", names):
            inside = (
                "storageProfile." if name.startswith(("DISK", "dataDisks", "imageReference", "resourceDisk")) else ""
            )
            for disk in ("osDisk", "dataDisks[]") if name.startswith("DISK") else ("",):
                listed["compute." + inside + name.replace("DISK", disk)] = version
    assert listed.pop("compute.storageProfile") == "2019-06-01"
    assert listed == {path: since for path, since in MEMBERS_SINCE.items() if path.startswith("compute.")}


def test_uniform_set_has_base_36_host_name() -> None:
    compute = document("scale_set", "set_862")["compute"]
    assert compute["osProfile"]["computerName"] == "set0000ny"
    assert (compute["name"], compute["vmScaleSetName"], compute["zone"]) == ("set_862", "set", "3")
    assert (compute["platformFaultDomain"], compute["physicalZone"]) == ("1", "westeurope-az3")
    assert compute["resourceId"].endswith("/virtualMachineScaleSets/set/virtualMachines/862")
    assert len(compute["placementGroupId"]) == 36 and compute["virtualMachineScaleSet"] == {"id": ""}


def test_instance_with_a_number_of_odd_or_many_digits_has_a_document() -> None:
    for number in ("\u00b2", "\u0663", "1" * 5000):
        name = f"set_{number}"
        found = documents(set={"kind": "scale_set", "vms": [name]}).document(name, NEWEST)["compute"]
        assert found["name"] == name and len(found["osProfile"]["computerName"]) == len("set000000")


def test_other_vms_have_their_name_as_host_name_and_no_placement_group() -> None:
    flexible = document("scale_set", "set_1a2b3c4d", orchestration="flexible")["compute"]
    assert flexible["virtualMachineScaleSet"]["id"].endswith("/virtualMachineScaleSets/set")
    assert flexible["resourceId"].endswith("/virtualMachines/set_1a2b3c4d") and flexible["vmScaleSetName"] == "set"
    standalone = document("standalone", "vm1")["compute"]
    assert standalone["osProfile"]["computerName"] == "vm1" and standalone["vmScaleSetName"] == ""
    assert flexible["placementGroupId"] == standalone["placementGroupId"] == ""


def test_placement_groups_have_different_ids() -> None:
    guid = "5f7c7a0e-0000-4000-8000-000000000001"
    made = documents(**placed("set", "first", "first", "second", guid, None))
    ids = [made.document(f"set_{number}", NEWEST)["compute"]["placementGroupId"] for number in range(5)]
    assert ids[0] == ids[1] and len({*ids}) == 4 and ids[3] == guid and {len(each) for each in ids} == {36}


def test_classic_vm_has_the_network_alone() -> None:
    made = document("cloud_service", "Front_IN_0")
    assert list(made) == ["network"] and made["network"]["interface"][0]["macAddress"]
    added = document("cloud_service", "Front_IN_0", instance={"compute": {"name": "x"}})
    assert added["compute"] == {"name": "x"}


def test_windows_vm_has_no_ssh_key() -> None:
    compute = with_instance({"compute": {"osType": "Windows"}})["compute"]
    assert (compute["osProfile"]["disablePasswordAuthentication"], compute["publicKeys"]) == ("", [])
    assert compute["storageProfile"]["osDisk"]["osType"] == "Windows"


def test_overrides_of_the_vm_win() -> None:
    of_group = {"compute": {"location": "north", "vmSize": "A", "subscriptionId": "s"}}
    of_vm = {"compute": {"vmSize": "B", "osProfile": {"adminUsername": "me"}}}
    vms = {"vm1": {"zone": 1, "instance": of_vm}}
    made = documents(web={"kind": "standalone", "instance": of_group, "vms": vms}).document("vm1", NEWEST)
    compute = made["compute"]
    assert (compute["location"], compute["vmSize"], compute["physicalZone"]) == ("north", "B", "north-az1")
    assert compute["resourceId"].startswith("/subscriptions/s/")
    assert compute["storageProfile"]["osDisk"]["managedDisk"]["id"].startswith("/subscriptions/s/")
    assert (compute["osProfile"]["adminUsername"], compute["osProfile"]["computerName"]) == ("me", "vm1")
    assert json.loads(json.dumps(made)) == made


def test_overridden_lists_stay_lists_whose_items_are_complete() -> None:
    keys = [{"keyData": "ssh-rsa one", "path": "/one"}, {"keyData": "ssh-rsa two", "path": "/two"}]
    compute = with_instance({"compute": {"publicKeys": keys, "storageProfile": {"dataDisks": [{"lun": 0}]}}})["compute"]
    assert compute["publicKeys"] == keys
    (disk,) = compute["storageProfile"]["dataDisks"]
    assert (disk["lun"], disk["managedDisk"], disk["isUltraDisk"]) == ("0", {"id": "", "storageAccountType": ""}, "")


def test_null_is_shown_as_missing_and_further_members_stay() -> None:
    missing = {"publicKeys": None, "plan": None, "zone": None, "mine": [1, True]}
    made = with_instance({"compute": missing, "network": None})
    compute = made["compute"]
    assert (compute["publicKeys"], compute["plan"]["name"], compute["zone"]) == ([], "", "")
    assert compute["mine"] == ["1", "true"] and made["network"] == {"interface": []}


@pytest.mark.parametrize(
    "given", [{"tags": "a:b;c:d:e"}, {"tagsList": [{"name": "a", "value": "b"}, {"name": "c", "value": "d:e"}]}]
)
def test_tags_and_tags_list_agree(given: dict[str, Any]) -> None:
    compute = with_instance({"compute": given})["compute"]
    assert compute["tags"] == "a:b;c:d:e"
    assert compute["tagsList"] == [{"name": "a", "value": "b"}, {"name": "c", "value": "d:e"}]
    # those of a VM replace both of its group, in either form
    for of_group in ({"tags": "x:y;"}, {"tagsList": [{"name": "x", "value": "y"}]}):
        vms: dict[str, Any] = {"vm1": {}, "vm2": {"instance": {"compute": given}}}
        made = documents(web={"kind": "availability_set", "vms": vms, "instance": {"compute": of_group}})
        own = made.document("vm2", NEWEST)["compute"]
        assert (own["tags"], own["tagsList"]) == (compute["tags"], compute["tagsList"])
        assert made.document("vm1", NEWEST)["compute"]["tagsList"] == [{"name": "x", "value": "y"}]


def test_addresses_of_all_vms_differ() -> None:
    vms: list[dict[str, Any]] = [{f"{name}{number}": {} for number in range(300)} for name in "abc"]
    # a source address that another VM would have by default, and one that is not of IPv4
    vms[1].update(b7={"source": "10.0.0.4"}, b8={"source": "fd00::8"})
    made = documents(**{name: {"kind": "availability_set", "vms": vms[at]} for at, name in enumerate("abc")})
    found = [made.document(name, "2021-02-01")["network"]["interface"][0] for each in vms for name in each]
    addresses = [each["ipv4"]["ipAddress"][0]["privateIpAddress"] for each in found]
    assert len(set(addresses)) == 900 and len({each["macAddress"] for each in found}) == 900
    assert all(re.fullmatch("000D3A[0-9A-F]{6}", each["macAddress"]) for each in found)
    assert addresses[307] == "10.0.0.4" and ":" not in addresses[308]
    assert found[308]["ipv6"]["ipAddress"] == [{"privateIpAddress": "fd00::8"}]
    subnets = [each["ipv4"]["subnet"] for each in found]
    assert subnets == [[{"address": each.rpartition(".")[0] + ".0", "prefix": "24"}] for each in addresses]


# -- over HTTP


@pytest.fixture
def get(sim):
    """Return a function that requests an element of a VM; further arguments are of the query."""

    def send(path, vm="vm1", version="2021-02-01", **query):
        words = "&".join(f"{name}={value}" for name, value in {"api-version": version, **query}.items())
        return send_request(sim.endpoints[vm], f"/metadata/instance{path}?{words}")

    return send


def test_instance_tree_is_json_with_string_values(get):
    answer = get("")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert all(isinstance(value, str) for _path, value in leaves(answer.json))
    # those of the version of the request
    assert "userData" in answer.json["compute"] and "extendedLocation" not in answer.json["compute"]


def test_instance_name_equals_the_entry_in_resources(sim, get):
    sim.post("/events", {"type": "Freeze", "resources": ["vm1"]})
    name = get("/compute/name", format="text")
    assert (name.status, name.body, name.headers["Content-Type"]) == (200, b"vm1", "text/plain; charset=utf-8")
    assert send_request(sim.endpoints["vm1"]).json["Events"][0]["Resources"] == [name.body.decode()]


TEXT = {"format": "text"}


@pytest.mark.parametrize(
    "path, query, status, body",
    [
        ("/network/interface/0/ipv4/subnet/0/prefix", TEXT, 200, b"24"),
        ("/COMPUTE/VmSize", {"format": "TEXT"}, 200, b"Standard_D2s_v5"),
        ("/compute/name/", TEXT, 200, b"vm1"),
        ("/compute/zone", TEXT, 200, b""),
        ("/compute/userData", {**TEXT, "version": "2021-01-01"}, 200, b""),
        ("/compute/storageProfile/osDisk/diskSizeGB", {**TEXT, "version": "2019-06-01"}, 200, b"30"),
        # names in a subtree; a slash stands for elements below
        ("", TEXT, 200, b"compute/\nnetwork/"),
        ("/network/interface", TEXT, 200, b"0/"),
        # a value has no other format than text
        ("/compute/name", {}, 400, b"format"),
        ("/compute/name", {"format": "json"}, 400, b"format"),
        ("/network/interface/0/macAddress", {}, 400, b"format"),
        ("", {"format": "yaml"}, 400, b"format"),
        ("/compute/nothing", TEXT, 404, b""),
        ("/nothing", TEXT, 404, b""),
        ("/network/interface/7", TEXT, 404, b""),
        ("/network/interface/x", TEXT, 404, b""),
        ("/compute/name/deeper", TEXT, 404, b""),
        ("/network/interface/-1", TEXT, 404, b""),
        ("/network/interface/%C2%B2", TEXT, 404, b""),
        pytest.param("/network/interface/" + "1" * 5000, TEXT, 404, b"", id="many-digits"),
    ],
)
def test_instance_element_is_its_value_or_a_listing_as_text_or_an_error(get, path, query, status, body):
    answer = get(path, **query)
    assert answer.status == status
    if status == 200:
        assert answer.body == body
    else:
        assert list(answer.json) == ["error"] and body in answer.body


def test_versions_route_needs_no_version(sim):
    answer = send_request(sim.endpoints["vm1"], "/metadata/versions")
    assert answer.json == {"apiVersions": list(INSTANCE_VERSIONS)}
