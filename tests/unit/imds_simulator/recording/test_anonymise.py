# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Anonymised recordings have no original name, and keep the relations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from imds_simulator.recording.anonymise import anonymised
from imds_simulator.recording.json_strings import replace_strings
from imds_simulator.recording.lines import INSTANCE, POLL, Answer
from imds_simulator.recording.pseudonyms import Pseudonyms, load, pseudonyms_file
from imds_simulator.recording.reader import Recording, Unusable
from imds_simulator.recording.recorder import Settings
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import SettableClock, SimulatorClock, record
from support.simulator_process import Simulator

SECRETS = ("sharky", "hush", "10.9.8.7", "203.0.113.9", "c0ffee00c0ff", "rg-of-ours", "eu-sharky", "ab-cd")
SCENARIO = {
    "groups": {
        "sharky": {
            "kind": "scale_set",
            "instance": {
                "compute": {
                    "subscriptionId": "12345678-ABCD-4bcd-8bcd-1234567890ab",
                    "resourceGroupName": "rg-of-ours",
                    "tags": "owner:hush",
                    "tagsList": [{"name": "owner", "value": "hush"}],
                    "userData": "aHVzaA==",
                    "publicKeys": [{"keyData": "ssh-rsa hush", "path": "/srv/hush/keys"}],
                    "newMember": "hush-hush",
                },
                "network": {
                    "interface": [
                        {
                            "macAddress": "C0FFEE00C0FF",
                            "ipv4": {"ipAddress": [{"privateIpAddress": "10.9.8.7", "publicIpAddress": "203.0.113.9"}]},
                        }
                    ]
                },
            },
            "vms": {"sharky_0": {}, "sharky_13": {}},
        }
    },
    "events": [
        {
            "type": "Freeze",
            "resources": ["sharky_13", "sharky_0"],
            "at": "20s",
            "description": "sharky_13 of SHARKY at 10.9.8.7",
        }
    ],
}


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with simulator_in_thread(SCENARIO, {"rate_limit": "off"}) as running:
        yield running


def documents(recording: Recording, purpose: str) -> Iterator[dict[str, Any]]:
    return (json.loads(each.body) for each in recording.answers if (each.purpose, each.status) == (purpose, 200))


def events_of(recording: Recording) -> Iterator[dict[str, Any]]:
    return (event for document in documents(recording, POLL) for event in document["Events"])


def instance_of(recording: Recording) -> dict[str, Any]:
    return list(documents(recording, INSTANCE))[-1]


def test_anonymised_recording_has_no_original_and_keeps_relations(tmp_path: Path, simulator: Simulator) -> None:
    file, endpoint = tmp_path / "recording", simulator.endpoints["sharky_13"]
    clock, settings = SimulatorClock(simulator), Settings(60, 10, ("2017-03-01", "2020-07-01"), probe=True)
    first = record(file, endpoint, clock, settings, anonymise=True)
    both = record(file, endpoint, clock, settings, anonymise=True)
    text = file.read_text(encoding="utf-8").lower()
    assert [secret for secret in SECRETS if secret in text] == []
    for event in simulator.get("/events")["events"]:
        assert event["id"].lower() not in text
    events, before = (list(events_of(each)) for each in (both, first))
    (event_id,) = {each["EventId"] for each in events}
    assert {each["EventId"] for each in before} == {event_id}
    data = instance_of(both)
    (set_name, number) = data["compute"]["name"].rsplit("_", 1)
    assert number == "13" and instance_of(first)["compute"]["name"] == f"{set_name}_13"
    event = events[-1]
    assert event["Resources"] == [f"{set_name}_13", f"{set_name}_0"]
    assert event["Description"].startswith(f"{set_name}_13 of {set_name} at 198.18.")
    assert data["compute"]["osProfile"]["computerName"].endswith("00000d")
    assert data["compute"]["subscriptionId"] in data["compute"]["resourceId"]
    assert pseudonyms_file(file).stat().st_mode & 0o777 == 0o600


def test_anonymised_recording_needs_its_pseudonyms_to_continue(tmp_path: Path, simulator: Simulator) -> None:
    file, endpoint = tmp_path / "recording", simulator.endpoints["sharky_0"]
    settings = Settings(5, 10, ("2020-07-01",))
    record(file, endpoint, SettableClock(), settings, anonymise=True)
    with pytest.raises(Unusable):
        record(file, endpoint, SettableClock(), settings, anonymise=False)
    pseudonyms_file(file).unlink()
    before = file.read_bytes()
    with pytest.raises(Unusable):
        record(file, endpoint, SettableClock(), settings, anonymise=True)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "body",
    [
        b"<html>secret</html>",
        b'{"Events":[{"Resources":["secret"',
        b"\xff\xfe",
        b"4915112345678",
        b'{"compute":{"tags":{"secret":""}}}',
        b'{"compute":{"/subscriptions/secret":""}}',
        b"[" * 5000 + b"]" * 5000,
    ],
)
def test_body_that_is_not_json_is_left_out(body: bytes) -> None:
    answer = anonymised(Answer(2, 0.0, 0.0, "poll", "GET", "/", status=502, body=body), Pseudonyms(None))
    assert answer.removed and answer.body == b""


def test_headers_stay_only_if_they_are_harmless() -> None:
    headers = {"date": "Mon, 19 Sep 2016 18:29:47 GMT", "x-host": "secret", "x-secret": "", "etag": '"secret"'}
    headers["server"] = "secret/1.0"
    names = Pseudonyms(None)
    answer = anonymised(Answer(2, 0.0, 0.0, "poll", "GET", "/", status=200, headers=headers), names)
    assert answer.headers["date"] == headers["date"] and "secret" not in json.dumps(dict(answer.headers))
    sent = Answer(3, 0.0, 0.0, "if-none-match", "GET", "/", {"If-None-Match": '"secret"'})
    assert anonymised(sent, names).sent["If-None-Match"] == answer.headers["etag"]


def test_replacement_keeps_every_other_byte() -> None:
    text = '{ "a" : ["x", {"b":"y\\"z", "c":1.50}], "":"q", "e":"\\u00e4" ,"f":{"g":null}}'
    assert replace_strings(text, lambda _path, value: value) == text
    paths: list[tuple[str, ...]] = []
    changed = replace_strings(text, lambda path, value: paths.append(path) or value.upper())  # type: ignore[func-returns-value]
    assert changed == '{ "a" : ["X", {"b":"Y\\"Z", "c":1.50}], "":"Q", "e":"Ä" ,"f":{"g":null}}'
    assert paths == [("a",), ("a", "b"), ("?",), ("e",)]


def hidden(names: Pseudonyms, data: object) -> str:
    body = json.dumps(data).encode()
    answer = anonymised(Answer(2, 0.0, 0.0, "poll", "GET", "/", status=200, body=body), names)
    assert not answer.removed
    return answer.body.decode()


DISK = {"name": "data_customer", "managedDisk": {"id": "/Subscriptions/s/resourceGroups/g/deployments/customer"}}
COMPUTE = {
    "name": "customer_13",
    "vmScaleSetName": "customer",
    "resourceId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/customer"
    "/virtualMachines/13",
    "osProfile": {"computerName": "customer00000d", "adminUsername": "4711"},
    "resourceGroupName": "2024",
    "plan": {"name": "customer", "publisher": "customer"},
    "storageProfile": {"dataDisks": [DISK], "osDisk": {"vhd": {"uri": "https://customer.example/x"}}},
    "extendedLocation": {"name": "customer", "type": "EdgeZone"},
    "hostGroup": {"id": "/subscriptions/s/resourceGroups/customer/providers/Microsoft.Compute/hostGroups/customer"},
    "customData": "Y3VzdG9tZXI=",
    "userData": "7",
}


def test_instance_metadata_keeps_relations_and_no_name() -> None:
    text = hidden(Pseudonyms(None), {"compute": COMPUTE})
    assert [each for each in ("customer", "4711", "2024", "Y3Vz", '"7"') if each.lower() in text.lower()] == []
    compute = json.loads(text)["compute"]
    scale_set = compute["vmScaleSetName"]
    assert compute["name"] == f"{scale_set}_13" and compute["osProfile"]["computerName"].endswith("00000d")
    assert compute["resourceId"].endswith(f"/virtualMachineScaleSets/{scale_set}/virtualMachines/13")


@pytest.mark.parametrize("name", ["web_customer", "web_customer_CUSTOMER", "crm_88231377", "7", "true", "2024-01-31"])
def test_every_name_is_replaced_and_equal_in_metadata_and_event(name: str) -> None:
    names = Pseudonyms(None)
    compute = json.loads(hidden(names, {"compute": {"name": name}}))["compute"]
    event = {"Description": f"{name}.", "Resources": [name]}
    (shown,) = json.loads(hidden(names, {"Events": [event]}))["Events"]
    assert shown["Resources"] == [compute["name"]]
    for part in name.split("_"):
        assert part == "web" or part.lower() not in compute["name"].lower().split("_")


def test_description_keeps_known_words_only() -> None:
    names = Pseudonyms(None)
    hidden(names, {"compute": {"name": "machine", "vmScaleSetName": "a", "tags": "is"}})
    usual = "Virtual machine is being paused because of a memory-preserving Live Migration operation."
    text = "Host web-sharky01 (fe80::51), sharkys, J\u00f6rg-db; x@sharky.example: is paused for 13 seconds at 10:00"
    # the description comes before the names that it has
    events = [{"Description": usual}, {"Description": text, "Resources": ["web-sharky01"]}]
    first, second = json.loads(hidden(names, {"Events": events}))["Events"]
    assert first["Description"] == usual
    assert [each for each in ("sharky", "rg-db", "fe80", "example") if each in second["Description"]] == []
    assert second["Description"].startswith(f"Host {second['Resources'][0]} (")
    assert second["Description"].endswith(": is paused for 13 seconds at 10:00")


def test_error_of_another_program_keeps_known_words_only() -> None:
    text = hidden(Pseudonyms(None), {"error": "Bad request: . jsmith has no access to proxy.corp.example"})
    assert text.startswith('{"error": "Bad request: . ') and "jsmith" not in text and "corp" not in text


def test_recording_without_any_answer_can_be_continued(tmp_path: Path) -> None:
    settings = Settings(5, 10, ("2020-07-01",))
    for _run in range(2):
        recording = record(tmp_path / "recording", "http://127.0.0.1:1", SettableClock(), settings, anonymise=True)
    assert {each.error for each in recording.answers} == {"refused"}


@pytest.mark.parametrize("content", ['{"name": {"a": 1}}', "[]", '{"name": []}', '{"name"', "[" * 90000])
def test_damaged_pseudonyms_are_refused(tmp_path: Path, content: str) -> None:
    pseudonyms_file(tmp_path / "recording").write_text(content, encoding="ascii")
    with pytest.raises(Unusable):
        load(tmp_path / "recording", True)
