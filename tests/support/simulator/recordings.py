# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Makes recordings of a server: the recorder runs in this process, over real sockets, with a given clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from imds_simulator.recording.recorder import Clock, Recorder
from imds_simulator.recording.recording_file import open_recording
from imds_simulator.scenario.groups import parse_address
from support.simulator_process import Simulator


def settable_clock(start: float = 1_800_000_000.0) -> Clock:
    """Return a clock that moves only when the recorder waits."""
    now = start

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    return Clock(lambda: now, lambda: now, sleep)


def clock_of(simulator: Simulator) -> Clock:
    """Return the clock of a simulator with ``--clock manual``."""
    now = simulator.get("/state")["unix"]

    def sleep(seconds: float) -> None:
        nonlocal now
        if seconds > 0:
            now = simulator.advance(seconds)["unix"]

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
