# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb replay as a process: a client sees what the VM saw."""

from __future__ import annotations

import fcntl
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
import requests

from imds_simulator.recording.reader import Recording
from imds_simulator.recording.recorder import Settings
from imds_simulator.replay.replay_command import main
from support import simulator_process
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import SimulatorClock, record
from support.simulator_process import ControlError, Simulator

SETTINGS = Settings(1600, 40, ("2020-07-01",), probe=True)
URL = "/metadata/scheduledevents?api-version=2020-07-01"
METADATA = {"Metadata": "true"}
# F_SETPIPE_SZ of linux/fcntl.h; Python has it from 3.10 on
SET_PIPE_SIZE = 1031


@contextmanager
def replay(file: Path, *options: str) -> Iterator[Simulator]:
    """Run the verb with a clock that only the test moves."""
    command = [sys.executable, "-m", "imds_simulator", "replay", str(file), "--clock", "manual", *options]
    ports = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    process = subprocess.Popen(command + ports, stdout=subprocess.PIPE, text=True, env=simulator_process.environment())
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    running = Simulator(process, lines[1].split()[1], lines)
    running.endpoints = {"vm1": lines[0].split()[1]}
    try:
        yield running
    finally:
        assert running.stop() == 0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A recording of a live migration."""
    file = tmp_path_factory.mktemp("recorded") / "recording"
    with simulator_in_thread("live-migration", {"rate_limit": "off"}) as simulator:
        return record(file, simulator.endpoints["vm1"], SimulatorClock(simulator), SETTINGS)


def test_client_of_a_replay_gets_the_recorded_answers(tmp_path: Path, recorded: Recording) -> None:
    with replay(Path(recorded.name), "--times", "recorded") as running:
        again = record(tmp_path / "again", running.endpoints["vm1"], SimulatorClock(running), SETTINGS)
        running.advance(100)
        assert running.get("/state")["finished"] is True
    assert len(recorded.answers) > 50
    for one, two in zip(recorded.answers, again.answers):
        assert (one.purpose, one.path, one.status, one.body) == (two.purpose, two.path, two.status, two.body)
        # aiohttp leaves Content-Length of an answer without a body out
        names = set(one.headers) - {"x-ms-request-id", *(("content-length",) if one.method == "HEAD" else ())}
        assert {name: two.headers.get(name) for name in names} == {name: one.headers[name] for name in names}
    assert len(recorded.answers) == len(again.answers)


def test_client_of_a_replay_sees_dates_that_count_from_now(recorded: Recording) -> None:
    (seen,) = {
        event["NotBefore"]
        for each in recorded.answers
        if each.purpose == "poll"
        for event in json.loads(each.body)["Events"]
        if event["NotBefore"]
    }
    with replay(Path(recorded.name), "--speed", "10", "--loop") as running:
        endpoint = running.endpoints["vm1"]
        running.advance(60)
        first = requests.get(endpoint + URL, headers=METADATA, timeout=10)
        (event,) = first.json()["Events"]
        # announced 10 s after the beginning, 15 min ahead: 91 s at ten times the speed, less the 6 s that passed
        now = running.get("/state")["unix"]
        assert event["NotBefore"] != seen
        assert 80 <= parsedate_to_datetime(event["NotBefore"]).timestamp() - now <= 90
        assert abs(parsedate_to_datetime(first.headers["Date"]).timestamp() - now) <= 1
        again = requests.get(endpoint + URL, headers={**METADATA, "If-None-Match": first.headers["ETag"]}, timeout=10)
        assert again.status_code == 304
        running.advance(running.get("/state")["length"])
        assert running.get("/state")["round"] == 1
        second = requests.get(endpoint + URL, headers=METADATA, timeout=10)
        assert second.json()["Events"][0]["EventId"] == event["EventId"]
        assert second.json()["Events"][0]["NotBefore"] > event["NotBefore"]
        assert second.headers["ETag"] != first.headers["ETag"]


def test_replay_answers_approvals_and_control_requests(recorded: Recording) -> None:
    with replay(Path(recorded.name)) as running:
        url = running.endpoints["vm1"] + URL
        running.advance(60)
        event_id = requests.get(url, headers=METADATA, timeout=10).json()["Events"][0]["EventId"]
        for given, status in ((event_id, 200), (event_id.lower(), 200), ("other", 400)):
            body = {"StartRequests": [{"EventId": given}]}
            assert requests.post(url, json=body, headers=METADATA, timeout=10).status_code == status
        assert requests.post(url, data=b"{", headers=METADATA, timeout=10).status_code == 400
        assert requests.post(url, json={}, timeout=10).status_code == 400
        assert len(running.get("/log?what=approval")["lines"]) == 5
        assert running.get("/requests")["counts"][-1]["method"] == "POST"
        for method, path, status in (("POST", "/advance", 400), ("GET", "/knobs", 404), ("POST", "/events", 404)):
            with pytest.raises(ControlError) as raised:
                running.call(method, path, {"seconds": "soon"} if method == "POST" else None)
            assert raised.value.status == status and raised.value.body["error"]


def test_replay_whose_output_is_not_read_answers(recorded: Recording) -> None:
    with replay(Path(recorded.name)) as running:
        assert running.process.stdout is not None
        fcntl.fcntl(running.process.stdout, SET_PIPE_SIZE, 4096)
        with requests.Session() as session:
            for _request in range(40):
                answer = session.post(running.endpoints["vm1"] + URL, data=b"x" * 200, headers=METADATA, timeout=10)
                assert answer.status_code == 400
        assert len(running.get("/log")["lines"]) == 40


def test_control_api_of_a_replay_needs_its_token_and_refuses_other_sites(recorded: Recording) -> None:
    with replay(Path(recorded.name)) as running:
        headers = {"Origin": "http://example.com"}
        refused = requests.post(running.control + "/advance", json={"seconds": 1}, headers=headers, timeout=10)
        assert refused.status_code == 403
    with replay(Path(recorded.name), "--control-token", "a-long-token") as running:
        assert requests.get(running.control + "/log", timeout=10).status_code == 401


def test_replay_with_one_address_for_vm_and_control_is_exit_2(
    capsys: pytest.CaptureFixture[str], recorded: Recording
) -> None:
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        assert main([recorded.name, "--listen", address, "--control", address]) == 2
    assert f"cannot listen on {address}: " in capsys.readouterr().err
