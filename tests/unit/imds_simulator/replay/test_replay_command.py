# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb replay as a process: a client gets what the recorder wrote."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from imds_simulator.recording.recorder import Settings
from imds_simulator.replay.replay_command import main
from support import simulator_process
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import SimulatorClock, record

URL = "/metadata/scheduledevents?api-version=2020-07-01"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a simulator with one event."""
    file = tmp_path_factory.mktemp("recorded") / "recording"
    with simulator_in_thread("live-migration", {"rate_limit": "off"}) as simulator:
        simulator.advance(20)
        record(file, simulator.endpoints["vm1"], SimulatorClock(simulator), Settings(5, 1, ("2020-07-01",)))
    return file


def test_client_of_a_replay_gets_the_recorded_document(recording: Path) -> None:
    command = [sys.executable, "-m", "imds_simulator", "replay", str(recording), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=simulator_process.environment())
    try:
        assert process.stdout is not None
        endpoint = process.stdout.readline().split()[1]
        answer = requests.get(endpoint + URL, headers={"Metadata": "true"}, timeout=10)
        assert answer.status_code == 200 and answer.headers["Server"].startswith("IMDS/")
        (event,) = answer.json()["Events"]
        text = recording.read_text(encoding="ascii")
        assert event["EventId"] in text and event["NotBefore"] in text and answer.headers["Date"] in text
        assert requests.post(endpoint + URL, headers={"Metadata": "true"}, timeout=10).status_code == 405
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


def test_address_in_use_is_exit_2(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main([str(recording), "--listen", address]) == 2
    assert f"cannot listen on {address}: " in capsys.readouterr().err


def test_removed_option_is_named_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["recording", "--loop"])
    assert stopped.value.code == 2
    assert "--loop: there is no such option; it was removed: a recording is served as it is" in capsys.readouterr().err
