# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs three daemons, a simulator, and a Prometheus that reads the daemons, on loopback addresses."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from support import simulator_process
from support.daemon.daemon_process import PYTHONPATH
from support.daemon.hook_scripts import write_hook
from support.free_port import free_port
from support.wait import wait_until

VMS = ("web1", "web2", "web3")
# seconds between two scrapes
SCRAPE_INTERVAL = 5
POLICY = {"rules": [{"name": "own", "when": {"concerns_me": True}, "approve": "after_prepare"}]}
# STAGE/NAME -> body; the VM is known by its folder
HOOKS = {
    "prepare/10-drain": 'sleep "$((3 * ${VM#web}))"',
    "prepare/20-flush": '[ "$VM $EVENT_TYPE" != "web2 Freeze" ] || exit 3; sleep 1',
    "recover/20-flush": "sleep 1",
    "recover/10-drain": '[ "$VM $EVENT_TYPE" != "web2 Reboot" ] || exit 3; sleep 3',
}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Prometheus:
    """A running Prometheus.

    Args:
        folder: gets the configuration and the database.
        targets: VM -> address of its metrics.
    """

    def __init__(self, folder: Path, targets: Mapping[str, str]) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        scrapes = [{"targets": [address], "labels": {"instance": vm}} for vm, address in targets.items()]
        jobs = [{"job_name": "azure-scheduled-events", "static_configs": scrapes}]
        configuration = {"global": {"scrape_interval": f"{SCRAPE_INTERVAL}s"}, "scrape_configs": jobs}
        (folder / "prometheus.yml").write_text(json.dumps(configuration), encoding="utf-8")
        self._folder = folder

    @contextlib.contextmanager
    def runs(self) -> Iterator[None]:
        """Start the program, and end it after the context."""
        command = ["prometheus", f"--config.file={self._folder / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={self._folder / 'data'}", f"--web.listen-address={self._url[7:]}"]
        with (
            open(self._folder / "prometheus.log", "wb") as log,
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
        ):
            try:
                wait_until(self._is_ready, "Prometheus answers")
                yield
            finally:
                process.terminate()

    def get(self, path: str, **parameters: object) -> Any:
        """Return the data of an answer of the HTTP API."""
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with _DIRECT.open(url, timeout=30) as answer:
            return json.loads(answer.read())["data"]

    def _is_ready(self) -> bool:
        try:
            return bool(self.get("status/buildinfo"))
        except OSError:
            return False


@contextlib.contextmanager
def fleet(folder: Path, events: list[dict[str, Any]], faults: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Run a simulator and a daemon for each VM.

    Args:
        folder: gets the folders of the daemons.
        events: of the scenario.
        faults: of the scenario.

    Yields:
        VM -> address of its metrics.
    """
    scenario = {
        "title": "three VMs",
        "groups": {"web": {"kind": "availability_set", "vms": {vm: {} for vm in VMS}}},
        "events": events,
        "faults": faults,
    }
    addresses = {vm: f"127.0.0.1:{free_port()}" for vm in VMS}
    with simulator_process.start(scenario) as azure, contextlib.ExitStack() as daemons:
        for vm, address in addresses.items():
            daemons.enter_context(_daemon(folder / vm, azure.endpoints[vm], address))
        yield addresses


def command_of(folder: Path, *words: str) -> None:
    """Run a verb of a daemon's command."""
    command = [sys.executable, "-m", "hook_runner", words[0], "--config", str(folder / "config.yml"), *words[1:]]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": PYTHONPATH}, check=True, capture_output=True)


def wait_for(moment: float) -> None:
    """Wait until a moment of the monotonic clock."""
    time.sleep(max(0.0, moment - time.monotonic()))


@contextlib.contextmanager
def _daemon(folder: Path, endpoint: str, metrics: str) -> Iterator[None]:
    folder.mkdir(mode=0o755)
    for hook, body in HOOKS.items():
        write_hook(folder / "hooks.d", hook, body)
    configuration = {
        "endpoint": endpoint,
        "hooks_directory": str(folder / "hooks.d"),
        "journal": str(folder / "journal.db"),
        "run_directory": str(folder / "run"),
        "metrics_address": metrics,
        "environment": {"VM": folder.name, "MARKS": str(folder / "marks")},
        "policy": POLICY,
        "when_started": "finish",
    }
    (folder / "config.yml").write_text(json.dumps(configuration), encoding="utf-8")
    (folder / "config.yml").chmod(0o600)
    command = [sys.executable, "-m", "hook_runner", "run", "--config", str(folder / "config.yml")]
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
