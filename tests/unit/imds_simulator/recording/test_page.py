# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""docs/simulator/recordings.md matches the code, and its commands run."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from imds_simulator.recording import record_command
from imds_simulator.recording.reader import read
from support import simulator_process
from support.simulator_process import Simulator

TEXT = (Path(__file__).resolve().parents[4] / "docs" / "simulator" / "recordings.md").read_text(encoding="utf-8")


def commands(language: str) -> list[str]:
    found = "".join(re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)).splitlines()
    return [line.removeprefix("$ ") for line in found if language == "bash" or line.startswith("$ ")]


def test_commands_of_the_page_run(tmp_path: Path, start_simulator: Callable[..., Simulator]) -> None:
    simulator = start_simulator("live-migration", args=["--quiet", "--knob", "rate_limit=off"])
    environment = {
        **simulator_process.environment(),
        "IMDS_SIMULATOR_RECORD_ENDPOINT": simulator.endpoints["vm1"],
        "IMDS_SIMULATOR_LISTEN": "127.0.0.1:0",
    }
    (command,) = commands("bash")
    # the recorder ends at once after its probes
    words = command.replace("--for 1h", "--for 1s").split()
    assert words[:3] == ["python3", "-m", "imds_simulator"]
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(read(tmp_path / "vm.jsonl").answers) > 25
    (command,) = commands("console")
    arguments = [*command.split()[1:], "--listen", "127.0.0.1:0"]
    replay = subprocess.Popen(
        [sys.executable, *arguments], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert replay.stdout is not None
        assert re.fullmatch(r"listening http://127.0.0.1:\d+ for \d+ answers in \d+ s\n", replay.stdout.readline())
    finally:
        replay.terminate()
        assert replay.wait(30) == 0


def test_page_names_every_option_and_error_code() -> None:
    options = re.findall(r'"(--[\w-]+)"', Path(record_command.__file__).read_text(encoding="utf-8"))
    assert len(options) > 7
    assert [each for each in options if f"`{each}" not in TEXT] == []
    exchange = (Path(record_command.__file__).parent / "exchange.py").read_text(encoding="utf-8")
    codes = [*re.findall(r'(?:return|_BodyError\() ?\(?"([\w-]+)"', exchange), "failed"]
    assert len(codes) > 5 and [each for each in codes if f"`{each}`" not in TEXT] == []
