# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Starts an imds_simulator process for a test, calls its control API, and ends it.

    with simulator_process.start("live-migration", args=["--clock", "manual"]) as imds:
        requests.get(imds.endpoints["vm1"] + "/metadata/scheduledevents?api-version=2020-07-01", ...)
        imds.post("/advance", {"seconds": 30})

Uses only the standard library, because tests of all kinds use it (unit, integration, host).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PACKAGE_ROOT = Path(__file__).resolve().parents[2] / "roles" / "imds_simulator" / "files"
# what Python runs for the simulator
MODULE = ("-m", "imds_simulator")
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ControlError(Exception):
    """The control API answered with an error, which the text has; ``status`` is that of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"control API answered {status}: {text}")
        self.status = status


class Simulator:
    """A running simulator.

    ``endpoints``: VM name -> URL; ``control``: URL of the control API; ``token``: its token, or empty.
    """

    def __init__(self, process: subprocess.Popen[str], control: str, output: list[str], token: str = "") -> None:
        self.process = process
        self.control = control
        self.token = token
        self.output = output
        self.endpoints: dict[str, str] = {}

    def get(self, path: str) -> Any:
        """Return the decoded JSON answer to a GET; raises ControlError for 4xx and 5xx."""
        return self.call("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        """Return the decoded JSON answer to a POST of ``body`` as JSON; raises ControlError."""
        return self.call("POST", path, {} if body is None else body)

    def delete(self, path: str) -> Any:
        """Return the decoded JSON answer to a DELETE; raises ControlError."""
        return self.call("DELETE", path)

    def advance(self, seconds: float) -> Any:
        """Move the simulator's clock forward by simulated seconds."""
        return self.post("/advance", {"seconds": seconds})

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the control API and return the decoded answer; raises ControlError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
        }
        request = urllib.request.Request(self.control + path, data=data, method=method, headers=headers)
        try:
            with _DIRECT.open(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise ControlError(error.code, error.read().decode(errors="replace")) from error

    def stop(self, how: int = signal.SIGTERM) -> int | None:
        """End the process, with SIGKILL after 30 s, and return its exit code."""
        atexit.unregister(self.stop)
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        return self.process.returncode

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()


def start(
    scenario: str | Path | Mapping[str, Any] | None = None,
    args: Sequence[str] = (),
    *,
    listen: str = "127.0.0.1:0",
    control: str = "127.0.0.1:0",
    token: str = "",
) -> Simulator:
    """Start ``python -m imds_simulator`` and return when it serves.

    Args:
        scenario: a shipped name, a file, or the content of a scenario file as a mapping; None: the
            default with one VM.
        args: further command-line arguments.
        listen: the address of the first VM, HOST:PORT.
        control: the address of the control API, HOST:PORT.
        token: the token of the control API; empty: none.

    Raises:
        RuntimeError: the simulator does not serve in time; the text has the output of the process.
    """
    if sys.platform == "win32":
        from support.windows.remote_simulator import start_remotely

        return start_remotely(
            scenario=scenario if scenario is None or isinstance(scenario, Mapping) else str(scenario),
            args=list(args),
            listen=listen,
            control=control,
            token=token,
        )
    arguments = ["--listen", listen, "--control", control, *args, *(["--control-token", token] if token else [])]
    if isinstance(scenario, Mapping):
        handle, name = tempfile.mkstemp(prefix="scenario-", suffix=".yaml")
        with os.fdopen(handle, "w") as file:
            json.dump(scenario, file)
        atexit.register(_forget, name)
        scenario = name
    if scenario is not None:
        arguments += ["--scenario", str(scenario)]
    process = spawn(*arguments, stderr=subprocess.STDOUT)
    output: list[str] = []
    ready = threading.Event()
    threading.Thread(target=_collect, args=(process, output, ready), daemon=True).start()
    ready.wait(60)
    url = next((line.split()[1] for line in output if line.startswith("control ")), None)
    if url is None:
        process.kill()
        process.wait(5)
        raise RuntimeError(f"the simulator did not start: {' '.join(arguments)}\n{''.join(output)}")
    running = Simulator(process, url, output, token)
    atexit.register(running.stop)
    running.endpoints = {name: vm["endpoint"] for name, vm in running.get("/state")["vms"].items()}
    return running


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port that no other process receives, and that refuses connections until a server listens on it."""
    with socket.socket() as held:
        # both sockets need this option to share the port; the simulator sets it too
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("", 0))
        yield held.getsockname()[1]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``python -m imds_simulator`` with these arguments and without input; the options are of subprocess.run."""
    command = [sys.executable, *MODULE, *map(str, arguments)]
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 120, "env": environment()}
    return subprocess.run(command, text=True, check=False, **{**given, **options})


def spawn(*arguments: object, program: Sequence[str] = MODULE, **options: Any) -> subprocess.Popen[str]:
    """Start the simulator with these arguments, without input, and return its process; ``options`` are of Popen.

    ``program``: what Python runs, with its own arguments.
    """
    pipe = subprocess.PIPE
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "env": environment()}
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, text=True, **{**given, **options})


def environment() -> dict[str, str]:
    """Return an environment in which Python finds the package of this checkout."""
    path = [str(PACKAGE_ROOT)] + [part for part in [os.environ.get("PYTHONPATH")] if part]
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path))


def _collect(process: subprocess.Popen[str], output: list[str], ready: threading.Event) -> None:
    """Read all output, because the simulator must not block on a full pipe."""
    for line in process.stdout or ():
        output.append(line)
        if line.startswith("control "):
            ready.set()
    ready.set()


def _forget(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
