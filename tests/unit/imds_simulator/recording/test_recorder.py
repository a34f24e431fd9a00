# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""What the recorder asks a server, and what it writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from imds_simulator.recording.recording_file import Unusable, key_file, open_recording
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import clock_of, lines_of, record, settable_clock
from support.simulator_process import Simulator

DISK = {"name": "sharky-disk", "lun": "0", "managedDisk": {"id": "/subscriptions/s/x/sharky"}, "vhd": {"uri": "hush"}}
COMPUTE = {
    "subscriptionId": "12345678-ABCD-4bcd-8bcd-1234567890ab",
    "resourceGroupName": "rg-of-ours",
    "osProfile": {"adminUsername": "hush"},
    "plan": {"name": "hush", "publisher": "hush"},
    "publisher": "hush",
    "tags": "owner:hush",
    "tagsList": [{"name": "owner", "value": "hush"}],
    "userData": "aHVzaA==",
    "customData": "aHVzaA==",
    "publicKeys": [{"keyData": "ssh-rsa hush", "path": "/srv/hush/keys"}],
    "storageProfile": {"dataDisks": [DISK]},
    "virtualMachineScaleSet": {"id": "/subscriptions/s/x/sharky"},
}
ADDRESS = {"privateIpAddress": "10.9.8.7", "publicIpAddress": "203.0.113.9"}
NETWORK = {"interface": [{"macAddress": "C0FFEE00C0FF", "ipv4": {"ipAddress": [ADDRESS]}}]}
SECRETS = ("sharky", "hush", "ahvz", "10.9.8.7", "203.0.113.9", "c0ffee", "rg-of-ours", "12345678-abcd", "owner")
SCENARIO = {
    "groups": {
        "sharky": {
            "kind": "scale_set",
            "instance": {"compute": COMPUTE, "network": NETWORK},
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


def test_recording_has_no_name_and_keeps_relations_when_it_is_continued(tmp_path: Path, simulator: Simulator) -> None:
    file, endpoint, clock = tmp_path / "recording", simulator.endpoints["sharky_13"], clock_of(simulator)
    record(file, endpoint, clock, 30, "2017-03-01", "2020-07-01")
    recorder = record(file, endpoint, clock, 10)
    text = file.read_text(encoding="ascii").lower()
    ids = [each["id"].lower() for each in simulator.get("/events")["events"]]
    assert ids and [secret for secret in (*SECRETS, *ids) if secret in text] == []
    assert recorder.allow_list.left_out["compute.tags"] == 1
    first, again = [each["body"]["compute"] for each in lines_of(file) if "/instance" in each["path"]]
    set_name = first["vmScaleSetName"]
    assert again == first and first["name"] == f"{set_name}_13"
    assert first["storageProfile"]["dataDisks"][0]["lun"] == "0"
    polls = [(each["path"][-10:], each["body"]["Events"]) for each in lines_of(file) if "events" in each["path"]]
    events = [(version, event) for version, listed in polls for event in listed]
    assert len({event["EventId"] for _version, event in events}) == 1 < len(events) < len(polls)
    names = {(version, *event["Resources"]) for version, event in events}
    assert names == {
        ("2017-03-01", f"_{set_name}_13", f"_{set_name}_0"),
        ("2020-07-01", f"{set_name}_13", f"{set_name}_0"),
    }


def test_recorder_only_reads_and_leaves_room_for_other_programs(tmp_path: Path, simulator: Simulator) -> None:
    versions = ("2017-08-01", "2019-01-01", "2019-08-01", "2020-07-01")
    recorder = record(tmp_path / "recording", simulator.endpoints["sharky_13"], clock_of(simulator), 60, *versions)
    requests = simulator.get("/requests")["requests"]
    assert {each["method"] for each in requests} == {"GET"} and len(requests) > 150
    assert recorder.outcomes == {"200": len(requests)}
    sent = [each["moment"] for each in requests]
    assert min(later - earlier for earlier, later in zip(sent, sent[3:])) > 0.99
    (event,) = simulator.get("/events")["events"]
    assert event["status"] == "Scheduled" and not event["approved_by"]


def test_recording_is_for_its_owner_and_one_recorder_only(tmp_path: Path, simulator: Simulator) -> None:
    file = tmp_path / "recording"
    file.touch(0o644)
    record(file, simulator.endpoints["sharky_0"], clock_of(simulator), 1)
    assert {path.stat().st_mode & 0o777 for path in (file, key_file(file))} == {0o600}
    with open_recording(file), pytest.raises(Unusable), open_recording(file):
        pass


def test_recording_needs_its_key_to_continue(tmp_path: Path, simulator: Simulator) -> None:
    file, endpoint = tmp_path / "recording", simulator.endpoints["sharky_0"]
    record(file, endpoint, clock_of(simulator), 1)
    before, key = file.read_bytes(), key_file(file).read_bytes()
    for damage in (key_file(file).unlink, lambda: key_file(file).write_bytes(b"")):
        damage()
        with pytest.raises(Unusable):
            record(file, endpoint, clock_of(simulator), 1)
    assert file.read_bytes() == before
    key_file(file).write_bytes(key)
    key_file(tmp_path / "other").write_bytes(key)
    record(tmp_path / "other", endpoint, clock_of(simulator), 1)
    name, other = [lines_of(each)[0]["body"]["compute"]["name"] for each in (file, tmp_path / "other")]
    assert name == other


class Proxy(BaseHTTPRequestHandler):
    """A proxy with its own page, and a name in its headers."""

    def do_GET(self) -> None:
        page = b"<html>no access for jsmith at proxy.corp.example</html>"
        self.send_response(200)
        self.send_header("Via", "proxy.corp.example")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_arguments: object) -> None:
        pass


def test_page_of_a_proxy_is_not_recorded_as_imds(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever).start()
        recorder = record(tmp_path / "recording", f"http://127.0.0.1:{server.server_port}", settable_clock(), 35)
        server.shutdown()
    # ten seconds pass after each error
    assert recorder.outcomes == {"not-imds": 8}
    for line in lines_of(tmp_path / "recording"):
        assert line["error"] == "not-imds" and set(line) == {"time", "path", "seconds", "error"}


def test_recorder_without_imds_records_the_reason(tmp_path: Path) -> None:
    for _run in range(2):
        record(tmp_path / "recording", "http://127.0.0.1:1", settable_clock(), 5)
    assert {line["error"] for line in lines_of(tmp_path / "recording")} == {"ConnectionRefusedError"}
    assert json.loads((tmp_path / "recording").read_text().splitlines()[0]) == {"format": "imds-recording/1"}
