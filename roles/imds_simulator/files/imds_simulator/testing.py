# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A simulator for the tests of another program, in a thread of the test.

Write::

    with Simulator() as imds:
        imds.schedule(type="Reboot", resources=["vm1"], name="patch")
        run_handler(imds.endpoint)
        assert imds.get("/events/patch")["approved_by"] == ["vm1"]

Nothing in it needs POSIX.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from .cli.control_client import Call, ControlError, send
from .scenario.files import ScenarioError, default_scenario, load_with_warnings, parse_with_warnings
from .scenario.groups import Address
from .scenario.plans import Scenario
from .simulator import RunningSimulator, ServerOptions, run_simulator

__all__ = ["ControlError", "ScenarioError", "Simulator"]

_FREE_PORT = Address("127.0.0.1", 0)


class Simulator:
    """A simulator that serves on free ports of 127.0.0.1 while the block of ``with`` runs, once.

    ``scenario`` is the path of a scenario file, the name of a shipped scenario, the text of such a file (with a line
    end or ``: `` in it), or its content as a mapping; None: one VM, ``vm1``, without events. What Azure does not send
    is a warning. ``clock``: with "manual" only ``advance`` moves the clock; with "real" time passes, too.

    Raises:
        ScenarioError: the scenario is invalid; the text has a line for each problem.
        ValueError: there is no such clock.
    """

    def __init__(
        self, scenario: str | os.PathLike[str] | Mapping[str, Any] | None = None, *, clock: str = "manual"
    ) -> None:
        if clock not in ("manual", "real"):
            raise ValueError(f"clock: {clock!r} is not one of manual, real")
        found, problems = _read(scenario)
        for each in problems:
            warnings.warn(each, stacklevel=2)
        self._options = ServerOptions(found, _FREE_PORT, _FREE_PORT, manual_clock=clock == "manual")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started: Future[RunningSimulator] = Future()

    def __enter__(self) -> Simulator:
        if self._thread.ident is not None:
            raise RuntimeError("Simulator: it serves in one block of with only; make another one")
        self._thread.start()
        self._started.result()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    @property
    def endpoint(self) -> str:
        """The URL of the first VM; RuntimeError before the block of ``with``."""
        return next(iter(self.endpoints.values()))

    @property
    def endpoints(self) -> dict[str, str]:
        """VM name -> URL; RuntimeError before the block of ``with``."""
        return self._running().listeners.endpoints()

    @property
    def control(self) -> str:
        """The URL of the control API; RuntimeError before the block of ``with``."""
        return self._running().control

    def schedule(self, **event: Any) -> Any:
        """Schedule an event with these keys of a scenario file; return its state, such as ``id``, and ``warnings``."""
        return self.post("/events", event)

    def advance(self, seconds: float | str) -> Any:
        """Move the clock forward by simulated seconds or a duration such as ``15m``; return its ``unix`` time."""
        return self.post("/advance", {"seconds": seconds})

    def log(self, **query: Any) -> Any:
        """Return the lines of the log; ``what`` selects their kind, ``after`` those behind a number."""
        return self.get("/log?" + urlencode(query))["lines"]

    def requests(self, **query: Any) -> Any:
        """Return the recent requests to IMDS; ``vm`` selects their VM, ``after`` those behind a number."""
        return self.get("/requests?" + urlencode(query))["requests"]

    def get(self, path: str) -> Any:
        """Return the JSON answer of the control API to a GET of ``path``; raises ControlError."""
        return self._send(Call("GET", path))

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON answer of the control API to a POST of ``body`` as JSON; raises ControlError."""
        return self._send(Call("POST", path, dict(body or {})))

    def delete(self, path: str) -> Any:
        """Return the JSON answer of the control API to a DELETE of ``path``; raises ControlError."""
        return self._send(Call("DELETE", path))

    def _running(self) -> RunningSimulator:
        if not self._started.done():
            raise RuntimeError("Simulator: it does not serve yet; write `with Simulator() as imds:`")
        return self._started.result()

    def _send(self, call: Call) -> Any:
        if not call.path.startswith("/"):
            raise ValueError(f"path: {call.path!r} does not begin with /")
        return send(SimpleNamespace(control=self.control, control_token=""), call)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with run_simulator(self._options, lambda _line: None) as running:
            self._started.set_result(running)
            await self._end.wait()


def _read(scenario: str | os.PathLike[str] | Mapping[str, Any] | None) -> tuple[Scenario, list[str]]:
    """Return the scenario and its warnings."""
    if scenario is None:
        return default_scenario(), []
    if isinstance(scenario, Mapping):
        # JSON is YAML as well; times and paths become text
        return parse_with_warnings(json.dumps(dict(scenario), default=str, ensure_ascii=False), "scenario")
    if not isinstance(scenario, (str, os.PathLike)) or not os.fspath(scenario):
        raise ScenarioError(f"scenario: {scenario!r} is not a path, a name, the text of a file or a mapping")
    if isinstance(scenario, str) and ("\n" in scenario or ": " in scenario):
        return parse_with_warnings(scenario, "scenario")
    return load_with_warnings(os.fspath(scenario))
