# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Instance metadata over HTTP (docs/reference/scheduled-events.md 3.2, 3.3)."""

from __future__ import annotations

import pytest

from imds_simulator.api_versions import INSTANCE_VERSIONS
from support.simulator.raw_http import send_request


@pytest.fixture
def get(frozen_simulator):
    """Return a function that requests an element of a VM; further arguments are of the query."""

    def send(path, vm="vm1", version="2021-02-01", **query):
        words = "&".join(f"{name}={value}" for name, value in {"api-version": version, **query}.items())
        return send_request(frozen_simulator.endpoints[vm], f"/metadata/instance{path}?{words}")

    return send


def leaves(value):
    if isinstance(value, (dict, list)):
        return [leaf for each in (value.values() if isinstance(value, dict) else value) for leaf in leaves(each)]
    return [value]


def test_instance_tree_is_json_with_string_values(get):
    answer = get("", "pool_3")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert all(isinstance(leaf, str) for leaf in leaves(answer.json))
    assert answer.json["compute"]["count"] == "3" and answer.json["compute"]["on"] == "true"


def test_instance_name_equals_the_entry_in_resources(frozen_simulator, get):
    frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"]})
    name = get("/compute/name", format="text")
    assert (name.status, name.body, name.headers["Content-Type"]) == (200, b"vm1", "text/plain; charset=utf-8")
    assert send_request(frozen_simulator.endpoints["vm1"]).json["Events"][0]["Resources"] == [name.body.decode()]


@pytest.mark.parametrize(
    "path, query, body",
    [
        ("/network/interface/0/ipv4/subnet/0/prefix", {}, b"24"),
        ("/COMPUTE/VmSize", {"format": "TEXT"}, b"Standard_D2s_v5"),
        ("/compute/name/", {}, b"vm1"),
        ("/compute/zone", {}, b""),
        ("/compute/userData", {"version": "2021-01-01"}, b""),
        ("/compute/storageProfile/osDisk/diskSizeGB", {"version": "2019-06-01"}, b"30"),
        # names in a subtree; a slash stands for elements below
        ("", {}, b"compute/\nnetwork/"),
        ("/network/interface", {}, b"0/"),
    ],
)
def test_instance_element_as_text_is_its_value_or_a_listing(get, path, query, body):
    answer = get(path, **{"format": "text", **query})
    assert (answer.status, answer.body) == (200, body)


@pytest.mark.parametrize("path", ["/compute/name", "/network/interface/0/macAddress"])
@pytest.mark.parametrize("query", [{}, {"format": "json"}])
def test_instance_leaf_without_format_text_is_400(get, path, query):
    answer = get(path, **query)
    assert answer.status == 400 and "format" in answer.json["error"]


def test_instance_format_of_another_kind_is_400(get):
    assert get("", format="yaml").status == 400


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
def test_instance_unknown_element_is_404(get, path):
    answer = get(path, format="text")
    assert answer.status == 404 and list(answer.json) == ["error"]


def test_instance_members_appear_with_their_version(get):
    assert "tagsList" in get("/compute", version="2019-06-04").json
    assert "tagsList" not in get("/compute", version="2019-06-01").json
    assert get("/compute/tagsList", version="2019-06-01").status == 404


def test_instance_subtree_is_json(get):
    assert get("/network/interface/0/ipv4/subnet").json == [{"address": "10.0.0.0", "prefix": "24"}]
    storage = get("/compute/storageProfile", version="2019-06-01")
    assert list(storage.json) == ["dataDisks", "imageReference", "osDisk"]


def test_versions_route_needs_no_version(frozen_simulator):
    answer = send_request(frozen_simulator.endpoints["vm1"], "/metadata/versions")
    assert answer.json == {"apiVersions": list(INSTANCE_VERSIONS)}
