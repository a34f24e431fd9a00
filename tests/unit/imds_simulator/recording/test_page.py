# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The commands of docs/simulator/recordings.md: a client of the replay gets what the recorder wrote."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from imds_simulator.__main__ import main
from imds_simulator.recording import record_command
from support import simulator_process
from support.repository import REPOSITORY
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import lines_of

TEXT = (REPOSITORY / "docs/simulator/recordings.md").read_text(encoding="utf-8")
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"


def command(language: str) -> list[str]:
    (found,) = re.findall(rf"```{language}\n(?:\$ )?python3 (.*)", TEXT)
    return [sys.executable, *("1s" if word == "1h" else word for word in found.split())]


def test_recording_of_the_page_is_served_as_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with simulator_in_thread("live-migration", {}) as simulator:
        simulator.advance(20)
        endpoint = {"IMDS_SIMULATOR_RECORD_ENDPOINT": simulator.endpoints["vm1"]}
        environment = {**simulator_process.environment(), **endpoint}
        subprocess.run(command("bash"), cwd=tmp_path, env=environment, timeout=100, check=True)
    environment = {**simulator_process.environment(), "IMDS_SIMULATOR_REPLAY_LISTEN": "127.0.0.1:0"}
    with subprocess.Popen(
        command("console"), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as replay:
        try:
            assert replay.stdout is not None
            printed = re.fullmatch(r"listening (http://(.*)) for \d+ answers in \d+ s\n", replay.stdout.readline())
            assert printed is not None

            def ask(path: str, method: str = "GET") -> requests.Response:
                return requests.request(method, printed[1] + path, headers={"Metadata": "true"}, timeout=10)

            answer = ask(EVENTS)
            found = (answer.json(), answer.headers["Date"], answer.headers["Server"])
            recorded = [
                (each["body"], *map(each["headers"].get, ("date", "server")))
                for each in lines_of(tmp_path / "vm.jsonl")
            ]
            (event,) = found[0]["Events"]
            assert found in recorded and event["NotBefore"] and event["Resources"][0] == ask(NAME).text
            assert ask(EVENTS, "POST").status_code == 405
            # the same address for a second one
            assert main(["replay", str(tmp_path / "vm.jsonl"), "--listen", printed[2]]) == 2
            assert f"cannot listen on {printed[2]}: " in capsys.readouterr().err
        finally:
            replay.terminate()
        assert replay.wait(30) == 0


def test_page_names_every_option() -> None:
    options = re.findall(r'option\(\s*"([\w-]+)"', Path(record_command.__file__).read_text(encoding="utf-8"))
    assert len(options) == 5 and [each for each in options if f"`--{each}" not in TEXT] == []
