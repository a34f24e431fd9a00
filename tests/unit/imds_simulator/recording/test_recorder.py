# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb record: what it asks and writes, its end by kills and full disks, and that replay serves what it wrote."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from imds_simulator.recording.recorder import Clock, Recorder
from imds_simulator.recording.recording_file import Unusable, key_file, open_recording
from imds_simulator.scenario.groups import parse_address
from imds_simulator.testing import Simulator
from support import simulator_process
from support.ready_hooks.web_server import Answer, WebServer
from support.repository import REPOSITORY
from support.simulator.raw_http import send_raw, send_request
from support.simulator_process import PACKAGE_ROOT
from support.wait import wait_until

TEXT = (REPOSITORY / "docs/simulator/recordings.md").read_text(encoding="utf-8")
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
DISK = {"name": "sharky-disk", "lun": "0", "managedDisk": {"id": "/subscriptions/s/x/sharky"}, "vhd": {"uri": "hush"}}
COMPUTE = {
    "subscriptionId": "12345678-ABCD-4bcd-8bcd-1234567890ab",
    "resourceGroupName": "rg-of-ours",
    "osProfile": {"adminUsername": "hush"},
    "tags": "owner:hush",
    "tagsList": [{"name": "owner", "value": "hush"}],
    "publisher": "hush",
    "userData": "aHVzaA==",
    "publicKeys": [{"keyData": "ssh-rsa hush", "path": "/srv/hush/keys"}],
    "storageProfile": {"dataDisks": [DISK]},
}
SECRETS = ("sharky", "hush", "ahvz", "rg-of-ours", "12345678-abcd", "owner")
FREEZE = {"type": "Freeze", "resources": ["sharky_13", "sharky_0"], "at": "20s", "description": "sharky_13 of SHARKY"}
SCENARIO = {
    "knobs": {"rate_limit": 0},
    "groups": {"sharky": {"kind": "scale_set", "instance": {"compute": COMPUTE}, "vms": ["sharky_0", "sharky_13"]}},
    "events": [FREEZE],
}


def clock_of(simulator: Simulator | None = None) -> Clock:
    """Return a clock that moves only when the recorder waits, and moves the clock of ``simulator``."""
    now = simulator.get("/state")["unix"] if simulator else 1_800_000_000.0

    def sleep(seconds: float) -> None:
        nonlocal now
        if seconds > 0:
            now = simulator.advance(seconds)["unix"] if simulator else now + seconds

    return Clock(lambda: now, lambda: now, sleep)


def record(file: Path, endpoint: str, clock: Clock, length: float, *versions: str) -> Recorder:
    """Record into ``file`` once a second, or continue it, and return the recorder."""
    with open_recording(file) as opened:
        recorder = Recorder(opened, parse_address(endpoint.partition("://")[2]), clock, lambda _line: None)
        recorder.run(length, 1.0, versions or ("2020-07-01",))
    return recorder


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a recording after the first."""
    return [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()[1:]]


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(SCENARIO) as running:
        yield running


def test_recording_has_no_name_and_keeps_relations_when_it_is_continued(tmp_path: Path, simulator: Simulator) -> None:
    file, endpoint, clock = tmp_path / "recording", simulator.endpoints["sharky_13"], clock_of(simulator)
    record(file, endpoint, clock, 30, "2017-03-01", "2020-07-01")
    recorder = record(file, endpoint, clock, 10)
    text = file.read_text(encoding="ascii").lower()
    ids = [each["id"].lower() for each in simulator.get("/events")["events"]]
    assert ids and [secret for secret in (*SECRETS, *ids) if secret in text] == []
    assert recorder.allow_list.left_out["compute.tags"] == 1
    instances = [each["body"] for each in lines_of(file) if "/instance" in each["path"]]
    assert [list(each) for each in instances] == [["compute"]] * 2, "no address of the network"
    first, again = [each["compute"] for each in instances]
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


def test_page_of_a_proxy_is_not_recorded_as_imds(tmp_path: Path) -> None:
    with WebServer("127.0.0.1") as server:
        page = b"<html>no access for jsmith at proxy.corp.example</html>"
        server.otherwise = lambda _request: Answer(body=page, headers={"Via": "proxy.corp.example"})
        recorder = record(tmp_path / "recording", server.url, clock_of(), 35)
    # ten seconds pass after each error
    assert recorder.outcomes == {"not-imds": 8}
    for line in lines_of(tmp_path / "recording"):
        assert line["error"] == "not-imds" and set(line) == {"time", "path", "seconds", "error"}


def test_recorder_without_imds_records_the_reason(tmp_path: Path) -> None:
    for _run in range(2):
        record(tmp_path / "recording", "http://127.0.0.1:1", clock_of(), 5)
    assert {line["error"] for line in lines_of(tmp_path / "recording")} == {"ConnectionRefusedError"}
    assert json.loads((tmp_path / "recording").read_text().splitlines()[0]) == {"format": "imds-recording/1"}


# -- the process


def start_recorder(file: Path, endpoint: str) -> subprocess.Popen[str]:
    arguments = ("record", "--output", str(file), "--endpoint", endpoint, "--for", "1h")
    return simulator_process.spawn(*arguments)


def wait_for_answers(file: Path, count: int) -> None:
    wait_until(
        lambda: file.exists() and file.read_text().count('"status":') >= count, f"{count} answers in {file.name}"
    )


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with Simulator("groups: {web: {vms: {vm1: }}}\nknobs: {rate_limit: off}") as simulator:
        yield simulator.endpoint


def test_killed_recording_is_repaired_and_continued(tmp_path: Path, endpoint: str) -> None:
    file = tmp_path / "recording"
    first = start_recorder(file, endpoint)
    wait_for_answers(file, 2)
    first.kill()
    first.communicate(timeout=10)
    whole = file.read_bytes()
    # a kill in the middle of a write
    file.write_bytes(whole + b'{"time":"20')
    second = start_recorder(file, endpoint)
    wait_for_answers(file, whole.count(b'"status":') + 2)
    second.send_signal(signal.SIGTERM)
    _out, messages = second.communicate(timeout=30)
    assert second.returncode == 0 and "signal" in messages
    assert file.read_bytes().startswith(whole) and len(lines_of(file)) > whole.count(b"\n")


def test_recording_continues_without_a_reader_of_its_messages(tmp_path: Path, endpoint: str) -> None:
    recorder = start_recorder(tmp_path / "recording", endpoint)
    assert recorder.stderr is not None
    recorder.stderr.close()
    wait_for_answers(tmp_path / "recording", 2)
    recorder.send_signal(signal.SIGHUP)
    assert recorder.wait(30) == 0


def test_reason_of_a_refusal_needs_no_time_of_the_writer_thread() -> None:
    program = (
        "import sys; from imds_simulator.recording import record_command; record_command.start_writing = lambda: None\n"
        "from imds_simulator.__main__ import main; sys.exit(main())"
    )
    refused = simulator_process.spawn("record", "--output", "/dev/null", program=["-c", program])
    assert "/dev/null: not a regular file" in refused.communicate(timeout=60)[1] and refused.returncode == 2


def test_copied_folder_records_without_libraries_and_says_first_what_it_enables(tmp_path: Path, endpoint: str) -> None:
    shutil.copytree(PACKAGE_ROOT / "imds_simulator", tmp_path / "imds_simulator")
    blocked = "import sys; sys.modules.update(dict.fromkeys(('aiohttp', 'yaml', 'multidict', 'requests')));"
    arguments = ["record", "--output", "recording", "--endpoint", endpoint, "--for", "0.5s"]
    program = f"{blocked} from imds_simulator.__main__ import main; sys.exit(main({arguments!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and done.stdout == "", done.stderr
    notice, _mark, summary = done.stderr.partition("answered by")
    assert "enables Scheduled Events" in notice and "never approves" in notice and "two minutes" in notice
    assert "'compute.tags' (1)" in summary


def test_full_disk_ends_the_recording_with_its_last_whole_line(tmp_path: Path, endpoint: str) -> None:
    file = tmp_path / "recording"
    arguments = ("record", "--output", file, "--endpoint", endpoint, "--for", "0.5s")
    assert simulator_process.run(*arguments).returncode == 0
    before = file.read_bytes()

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        # room for the instance metadata, and for a part of the first document
        size = 2 * len(before) - 100
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = simulator_process.run(*arguments, preexec_fn=limit)
    assert done.returncode == 1 and str(file) in done.stderr and "Traceback" not in done.stderr
    after = file.read_bytes()
    assert after.startswith(before) and after.endswith(b"\n") and len(after) > len(before)
    assert simulator_process.run(*arguments).returncode == 0 and len(lines_of(file)) > after.count(b"\n")


@pytest.mark.parametrize(
    "content", [b"notes of mine", b"notes\n", b'{"format":"imds-recording/9"}\n', b'{"format":"imds-rec', b"\xff\xfe\n"]
)
def test_file_that_is_no_recording_is_refused_unchanged(
    call: Callable[..., Any], tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "notes"
    file.write_bytes(content)
    file.chmod(0o644)
    for arguments in (("record", "--output", file), ("replay", file)):
        done = call(*arguments)
        assert done.code == 2 and str(file) in done.err
    assert file.read_bytes() == content and file.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [file]


# -- docs/simulator/recordings.md


def words_of_page(language: str) -> list[str]:
    (found,) = re.findall(rf"```{language}\n(?:\$ )?python3 -m imds_simulator (.*)", TEXT)
    return ["1s" if word == "1h" else word for word in found.split()]


def test_recording_of_the_page_is_served_as_the_page_says(call: Callable[..., Any], tmp_path: Path) -> None:
    with Simulator("live-migration") as simulator:
        simulator.advance(20)
        endpoint = {"IMDS_SIMULATOR_RECORD_ENDPOINT": simulator.endpoints["vm1"]}
        environment = {**simulator_process.environment(), **endpoint}
        assert simulator_process.run(*words_of_page("bash"), cwd=tmp_path, env=environment).returncode == 0
    environment = {**simulator_process.environment(), "IMDS_SIMULATOR_REPLAY_LISTEN": "127.0.0.1:0"}
    with simulator_process.spawn(*words_of_page("console"), cwd=tmp_path, env=environment) as replay:
        try:
            assert replay.stdout is not None and replay.stderr is not None
            printed = re.fullmatch(r"listening (http://(.*)) for \d+ answers in \d+ s\n", replay.stdout.readline())
            assert printed is not None
            answer = send_request(printed[1])
            found = (answer.json, answer.headers["Date"], answer.headers["Server"])
            recorded = [
                (each["body"], *map(each["headers"].get, ("date", "server")))
                for each in lines_of(tmp_path / "vm.jsonl")
            ]
            (event,) = found[0]["Events"]
            assert found in recorded and event["NotBefore"]
            assert send_request(printed[1], NAME).body.decode() == event["Resources"][0]
            assert send_request(printed[1], method="POST").status == 405
            assert send_raw(printed[1], b"GET /metadata HTTP/1.1\r\nno colon\r\n\r\n").split()[1] == b"400"
            # the same address for a second one
            second = call("replay", tmp_path / "vm.jsonl", "--listen", printed[2])
            assert second.code == 2 and f"cannot listen on {printed[2]}: " in second.err
        finally:
            replay.terminate()
        assert replay.wait(30) == 0 and replay.stderr.read() == ""
