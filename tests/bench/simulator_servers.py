# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The servers that bench_simulator compares, each as a process of its own on one core."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE_ROOT = Path("roles/imds_simulator/files")
VMS = 1000
GROUP_SIZE = 50
_CONTROL = "control "
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Server:
    """A process that serves at ``port``; ``control`` is the URL of a simulator's control API."""

    pid: int
    port: int
    control: str = ""

    def set_rate_limit(self, requests_per_second: int) -> None:
        """Set the rate limit of a simulator; other servers have none."""
        if self.control:
            body = json.dumps({"rate_limit": requests_per_second}).encode()
            with _DIRECT.open(urllib.request.Request(self.control + "/knobs", data=body), timeout=30) as answer:
                answer.read()

    def cpu_seconds(self) -> float:
        """Return the user and system time of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def source_address(number: int) -> str:
    """Return the loopback address from which VM ``number`` sends its requests."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


@contextlib.contextmanager
def simulator(package_root: Path, core: int) -> Iterator[Server]:
    """Run the simulator of ``package_root`` with 20 groups of 50 VMs, an event in each."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.yaml"
        scenario.write_text(json.dumps(_scenario()))
        options = ["--scenario", str(scenario), "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--quiet"]
        command = [sys.executable, "-m", "imds_simulator", *options]
        environment = {**os.environ, "PYTHONPATH": str(package_root)}
        with _process(command, core, environment) as process:
            port, lines = 0, []
            for line in process.stdout or ():
                lines.append(line)
                if line.startswith("listening "):
                    port = int(line.split()[1].rpartition(":")[2])
                if line.startswith(_CONTROL):
                    yield Server(process.pid, port, line.split()[1])
                    return
            raise SystemExit(f"the simulator did not start: {''.join(lines)}")


@contextlib.contextmanager
def canned(core: int) -> Iterator[Server]:
    """Run the server that sends the same bytes to every client."""
    with _process([sys.executable, str(Path(__file__).with_name("canned_server.py"))], core, None) as process:
        yield Server(process.pid, int(process.stdout.readline() if process.stdout else "0"))


@contextlib.contextmanager
def open_page(server: Server, core: int) -> Iterator[None]:
    """Poll the state as the live page does, in a process of its own."""
    with _process(
        [sys.executable, str(Path(__file__).with_name("page_poll.py")), server.control], core, None
    ) as process:
        first = process.stdout.readline() if process.stdout else ""
        if first != "open\n":
            raise SystemExit(f"the live page cannot poll: {first}")
        yield
        if process.poll() is not None:
            raise SystemExit("the polls of the live page ended")


@contextlib.contextmanager
def package_of(commit: str) -> Iterator[Path | None]:
    """Unpack the simulator's package of ``commit``; yield its path, or None if the repository has no such commit."""
    command = ["git", "-C", str(ROOT), "archive", commit, str(PACKAGE_ROOT)]
    archive = subprocess.run(command, capture_output=True, timeout=60, check=False)
    if archive.returncode:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder) / PACKAGE_ROOT


def _scenario() -> dict[str, object]:
    firsts = range(0, VMS, GROUP_SIZE)
    return {
        "groups": {
            f"g{first}": {
                "kind": "availability_set",
                "vms": {
                    f"vm{number}": {"source": source_address(number)} for number in range(first, first + GROUP_SIZE)
                },
            }
            for first in firsts
        },
        "events": [{"type": "Freeze", "resources": [f"vm{first}"], "notice": "2h"} for first in firsts],
    }


@contextlib.contextmanager
def _process(command: list[str], core: int, environment: dict[str, str] | None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        os.sched_setaffinity(process.pid, {core})
        yield process
    finally:
        process.kill()
        process.wait(5)
        if process.stdout:
            process.stdout.close()
