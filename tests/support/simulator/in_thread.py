# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A simulator in a thread of the test: it starts faster than a process, and is the same over its sockets."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from imds_simulator.cli.commands import SERVE
from imds_simulator.cli.parsing import parse
from imds_simulator.cli.serve_command import server_options
from imds_simulator.simulator import ServerOptions, run_simulator
from support.simulator_process import Simulator


class SimulatorInThread(Simulator):
    def __init__(self, settings: ServerOptions) -> None:
        self.token = settings.control_token
        self.endpoints: dict[str, str] = {}
        self._settings = settings
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(60) and self.endpoints, "the simulator did not start"

    def stop(self, _how: int = signal.SIGTERM) -> int:
        """End the simulator, as any signal does; returns 0."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(60)
        return 0

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with run_simulator(self._settings, lambda _line: None) as running:
                self.control, self.endpoints = running.control, dict(running.endpoints)
                self._started.set()
                await self._end.wait()
        finally:
            self._started.set()


def start_in_thread(
    scenario: str | Mapping[str, Any] | None = None,
    args: Sequence[str] = (),
    *,
    listen: str = "127.0.0.1:0",
    token: str = "",
) -> SimulatorInThread:
    """Return a simulator that serves; the arguments are those of ``simulator_process.start``."""
    words = ["--listen", listen, "--control", "127.0.0.1:0", *args]
    words += ["--control-token", token] if token else []
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        if isinstance(scenario, Mapping):
            json.dump(scenario, file)
            file.flush()
            scenario = file.name
        words += ["--scenario", scenario] if scenario else []
        return SimulatorInThread(server_options(parse(SERVE, words)))
