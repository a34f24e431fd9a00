# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Instance metadata (docs/reference/scheduled-events.md 3.2, 3.3)."""

from __future__ import annotations

import pytest

from imds_simulator.api_versions import INSTANCE_VERSIONS
from support.simulator.raw_http import send_request

VERSION = "api-version=2021-02-01"


def get(sim, path, vm="vm1"):
    return send_request(sim.endpoints[vm], "/metadata/instance" + path)


def test_instance_tree_is_json_with_string_values(frozen_simulator):
    def leaves(value):
        if isinstance(value, dict):
            return [leaf for each in value.values() for leaf in leaves(each)]
        if isinstance(value, list):
            return [leaf for each in value for leaf in leaves(each)]
        return [value]

    answer = get(frozen_simulator, "?" + VERSION, "pool_3")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert all(isinstance(leaf, str) for leaf in leaves(answer.json))
    assert answer.json["compute"]["count"] == "3" and answer.json["compute"]["on"] == "true"


def test_instance_name_equals_the_entry_in_resources(frozen_simulator):
    frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"]})
    name = get(frozen_simulator, "/compute/name?format=text&" + VERSION)
    assert (name.status, name.body, name.headers["Content-Type"]) == (200, b"vm1", "text/plain; charset=utf-8")
    assert send_request(frozen_simulator.endpoints["vm1"]).json["Events"][0]["Resources"] == [name.body.decode()]


@pytest.mark.parametrize(
    "path, body",
    [
        ("/network/interface/0/ipv4/subnet/0/prefix?format=text&" + VERSION, b"24"),
        ("/COMPUTE/VmSize?format=TEXT&" + VERSION, b"Standard_D2s_v5"),
        ("/compute/name/?format=text&" + VERSION, b"vm1"),
        ("/compute/zone?format=text&" + VERSION, b""),
    ],
)
def test_instance_leaf_as_text_is_its_value(frozen_simulator, path, body):
    answer = get(frozen_simulator, path)
    assert (answer.status, answer.body) == (200, body)


@pytest.mark.parametrize(
    "path",
    ["/compute/name?" + VERSION, "/compute/name?format=json&" + VERSION, "/network/interface/0/macAddress?" + VERSION],
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
    answer = get(frozen_simulator, path + "?format=text&" + VERSION)
    assert answer.status == 404 and list(answer.json) == ["error"]


def test_instance_subtree_as_text_is_a_listing(frozen_simulator):
    assert get(frozen_simulator, "/network/interface/0/ipv4/subnet?" + VERSION).json == [
        {"address": "10.0.0.0", "prefix": "24"}
    ]
    assert get(frozen_simulator, "?format=text&" + VERSION).body == b"compute/\nnetwork/"
    assert get(frozen_simulator, "/network/interface?format=text&" + VERSION).body == b"0/"
    assert get(frozen_simulator, "?format=yaml&" + VERSION).status == 400


def test_instance_members_appear_with_their_version(frozen_simulator):
    for member, since in {"name": "2017-04-02", "tagsList": "2019-06-04", "osProfile": "2020-07-15"}.items():
        older = INSTANCE_VERSIONS[INSTANCE_VERSIONS.index(since) - 1]
        assert member in get(frozen_simulator, "/compute?api-version=" + since).json
        assert member not in get(frozen_simulator, "/compute?api-version=" + older).json
    assert get(frozen_simulator, "/compute/tagsList?api-version=2019-06-01").status == 404


def test_instance_user_data_and_storage_profile_are_reachable(frozen_simulator):
    assert get(frozen_simulator, "/compute/userData?format=text&api-version=2021-01-01").body == b""
    assert get(frozen_simulator, "/compute/userData?format=text&api-version=2020-12-01").status == 404
    storage = get(frozen_simulator, "/compute/storageProfile?api-version=2019-06-01")
    assert list(storage.json) == ["dataDisks", "imageReference", "osDisk"]
    size = get(frozen_simulator, "/compute/storageProfile/osDisk/diskSizeGB?format=text&api-version=2019-06-01")
    assert size.body == b"30"


def test_versions_route_needs_no_version(frozen_simulator):
    assert send_request(frozen_simulator.endpoints["vm1"], "/metadata/versions").json == {
        "apiVersions": list(INSTANCE_VERSIONS)
    }
