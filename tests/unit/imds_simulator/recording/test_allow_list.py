# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A recording has listed members only, no name, and the relations between names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imds_simulator.recording.allow_list import AllowList

KEY = bytes(32)


def listed(data: object, allow_list: AllowList | None = None) -> Any:
    return (allow_list or AllowList(KEY)).body(json.dumps(data).encode())


def event(**members: object) -> Any:
    return listed({"DocumentIncarnation": 3, "Events": [members]})["Events"][0]


def test_unknown_members_are_left_out_and_counted() -> None:
    allow_list = AllowList(KEY)
    compute = {"location": "westeurope", "zone": "", "vmSize": None, "addedByAzure": "secret", "tags": {"secret": "x"}}
    for _answer in range(2):
        assert listed({"compute": compute, "secret": 1}, allow_list) == {
            "compute": {"location": "westeurope", "zone": "", "vmSize": None}
        }
    assert allow_list.left_out == {"compute.addedByAzure": 2, "compute.tags": 2, "secret": 2}


@pytest.mark.parametrize("name", ["web_customer", "web_customer_CUSTOMER", "crm_88231377", "7", "true", "2024-01-31"])
def test_every_name_is_replaced_and_equal_in_metadata_and_event(name: str) -> None:
    shown = listed({"compute": {"name": name}})["compute"]["name"]
    assert event(Resources=[name, f"_{name}", f"{name}_0"])["Resources"] == [shown, f"_{shown}", f"{shown}_0"]
    assert listed({"compute": {"vmScaleSetName": name}})["compute"]["vmScaleSetName"] == shown
    assert not {part.lower() for part in name.split("_")} & set(shown.lower().split("_"))
    assert listed({"compute": {"name": name.upper()}})["compute"]["name"] == shown
    assert listed({"compute": {"name": name}}, AllowList(bytes(31) + b"1"))["compute"]["name"] != shown


def test_number_of_an_instance_stays_and_no_other_number() -> None:
    compute = {"name": "web_2_13", "vmScaleSetName": "web_2", "resourceGroupName": "customer_4711"}
    found = listed({"compute": compute})["compute"]
    assert found["name"] == f"{found['vmScaleSetName']}_13"
    assert "_2" not in found["vmScaleSetName"] and "4711" not in found["resourceGroupName"]


def test_event_keeps_its_form_and_has_no_unknown_member() -> None:
    members = {
        "EventStatus": "Scheduled",
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
        "Description": "Host server is undergoing maintenance.",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
    }
    assert event(**members, Contact="customer") == members
    assert listed({"DocumentIncarnation": 3, "Events": None}) == {"DocumentIncarnation": 3, "Events": None}
    assert listed({"DocumentIncarnation": 3, "Contact": {"customer": 1}}) == {"DocumentIncarnation": 3}


@pytest.mark.parametrize(
    "text", ["customer's VM.", "Host server is undergoing maintenance. customer", "Bad request: . customer", "5" * 9]
)
def test_unknown_text_is_a_pseudonym(text: str) -> None:
    shown = event(Description=text)["Description"]
    assert shown.startswith("text-") and listed({"error": text}) == {"error": shown}
    assert shown == event(Description=text)["Description"] != event(Description=text + ".")["Description"]


@pytest.mark.parametrize(
    "body",
    [
        b"<html>secret</html>",
        b'{"Events":[{"Resources":["secret"',
        b"\xff\xfe",
        b"4915112345678",
        b'"secret"',
        b'["secret"]',
        b'{"secret":{"compute":{"name":"secret"}}}',
        b"{}",
        b"[" * 5000 + b"]" * 5000,
    ],
)
def test_body_that_is_not_from_imds_is_left_out(body: bytes) -> None:
    assert AllowList(KEY).body(body) is None


@pytest.mark.parametrize(
    "data",
    [
        {"compute": {"tags": {"secret": "secret"}, "name": {"secret": "secret"}, "location": ["secret"]}},
        {"compute": {"location": "https://secret?sig=1", "zone": "\u0000secret"}},
        {"compute": "secret", "network": "secret"},
        {"Events": "secret", "DocumentIncarnation": "se?cret"},
        {"Events": [["secret"], "secret", {"Resources": "secret", "EventId": {"secret": 1}, "NotBefore": ["secret"]}]},
    ],
)
def test_answer_of_another_form_has_no_text_of_its_own(data: object) -> None:
    assert "secret" not in json.dumps(listed(data))


@pytest.mark.parametrize("number", [b"1e400", b"NaN"])
def test_number_that_json_lacks_is_a_pseudonym(number: bytes) -> None:
    answer = AllowList(KEY).body(b'{"DocumentIncarnation":' + number + b',"Events":[]}')
    json.dumps(answer, allow_nan=False)
    assert answer["DocumentIncarnation"].startswith("text-")


def test_empty_answer_stays() -> None:
    assert AllowList(KEY).body(b"") == ""


def test_headers_stay_only_if_they_are_listed() -> None:
    kept = {"date": "Mon, 19 Sep 2016 18:29:47 GMT", "content-type": "application/json; charset=utf-8"}
    headers = {**kept, "server": "secret/1.0", "x-secret": "", "etag": '"secret"', "location": "http://secret/"}
    shown = AllowList(KEY).headers(headers)
    assert {**kept, "server": shown["server"]} == shown and "secret" not in shown["server"]
    assert AllowList(KEY).headers({"server": "IMDS/150.870.65.1854"}) == {"server": "IMDS/150.870.65.1854"}
