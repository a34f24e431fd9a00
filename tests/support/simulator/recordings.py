# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Makes recordings of a server: the recorder runs in this process, over real sockets, with a given clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from imds_simulator.recording.anonymise import anonymised
from imds_simulator.recording.exchange import Exchange
from imds_simulator.recording.lines import Answer, Header
from imds_simulator.recording.pseudonyms import load
from imds_simulator.recording.reader import Recording, read
from imds_simulator.recording.recorder import Clock, Recorder, Settings
from imds_simulator.recording.writer import open_recording
from support.simulator_process import Simulator


class SettableClock:
    """A clock that moves only when the recorder waits, or when the test moves it."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self.now = start

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> bool:
        self.now += seconds
        return True


class SimulatorClock(SettableClock):
    """The clock of a simulator with ``--clock manual``."""

    def __init__(self, simulator: Simulator) -> None:
        super().__init__(simulator.get("/state")["unix"])
        self._simulator = simulator

    def sleep(self, seconds: float) -> bool:
        if seconds > 0:
            self.now = self._simulator.advance(seconds)["unix"]
        return True


def record(
    file: Path,
    endpoint: str,
    clock: Clock,
    settings: Settings,
    anonymise: bool = False,
    replace: Callable[[Answer], Answer] = lambda answer: answer,
) -> Recording:
    """Record into ``file``, or continue it, and return the whole recording."""
    opened = open_recording(file, Header(clock.wall(), endpoint, anonymise))
    try:
        if anonymise:
            names = load(file, opened.before is not None)

            def replace(answer: Answer) -> Answer:
                replaced = anonymised(answer, names)
                names.save()
                return replaced

        Recorder(settings, opened, Exchange(endpoint, clock.monotonic).send, clock, replace, lambda _line: None).run()
    finally:
        opened.close()
    return read(file)
