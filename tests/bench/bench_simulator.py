# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Number of VMs that one core serves: the simulator, and a constant answer from Python's own http.server.

    python tests/bench/bench_simulator.py

Each server runs in a separate process, on one core. 1,000 persistent connections, each from the
source address of one VM, send requests from another core: first as fast as it answers, then 1,000
requests per second. Takes less than 40 seconds.
"""

from __future__ import annotations

import http.server
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support import simulator_process

VMS = 1000
GROUP_SIZE = 50
SATURATED_SECONDS = 5.0
PACED_SECONDS = 5.0
ANSWER_TIMEOUT = 10.0
REQUEST = (
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n\r\n"
)
CANNED_BODY = json.dumps(
    {
        "DocumentIncarnation": 2,
        "Events": [
            {
                "EventId": "5EED0000-0000-4000-8000-000000000001",
                "EventStatus": "Scheduled",
                "EventType": "Freeze",
                "ResourceType": "VirtualMachine",
                "Resources": ["vm0"],
                "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
                "Description": "Host server is undergoing maintenance.",
                "EventSource": "Platform",
                "DurationInSeconds": 9,
            }
        ],
    },
    separators=(",", ":"),
).encode()


@dataclass(frozen=True)
class Result:
    """Result of one server: rates in requests per second, latencies in ms, CPU as a share of one core."""

    name: str
    saturated: float
    per_cpu_second: float
    paced_cpu: float
    p50: float
    p99: float


def main() -> int:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536, hard))
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[-1]})
    results = [measure_simulator(cores[0]), measure_canned(cores[0])]
    print_table(results)
    return 0


def source_address(number: int) -> str:
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


def measure_simulator(core: int) -> Result:
    """Measure the simulator with 20 groups of 50 VMs, an event in each."""
    groups = {
        f"g{first}": {
            "kind": "availability_set",
            "vms": {f"vm{number}": {"source": source_address(number)} for number in range(first, first + GROUP_SIZE)},
        }
        for first in range(0, VMS, GROUP_SIZE)
    }
    events = [{"type": "Freeze", "resources": [f"vm{first}"], "notice": "2h"} for first in range(0, VMS, GROUP_SIZE)]
    with simulator_process.start({"groups": groups, "events": events}, args=["--quiet"]) as running:
        os.sched_setaffinity(running.process.pid, {core})
        port = int(running.endpoints["vm0"].rpartition(":")[2])
        running.post("/knobs", {"rate_limit": 0})
        return measure(
            "imds_simulator", running.process.pid, port, before_paced=lambda: running.post("/knobs", {"rate_limit": 5})
        )


def measure_canned(core: int) -> Result:
    """Measure a ThreadingHTTPServer that answers all requests with the same bytes."""
    process = subprocess.Popen([sys.executable, __file__, "--canned"], stdout=subprocess.PIPE, text=True)
    try:
        os.sched_setaffinity(process.pid, {core})
        port = int((process.stdout.readline() if process.stdout else "0").strip())
        return measure("http.server, canned", process.pid, port)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(5)
        if process.stdout:
            process.stdout.close()


def measure(name: str, pid: int, port: int, before_paced: Callable[[], object] | None = None) -> Result:
    connections = [connect(number, port) for number in range(VMS)]
    try:
        warm_up(connections[0])
        began, cpu = time.monotonic(), cpu_seconds(pid)
        done = saturate(connections)
        took, used = time.monotonic() - began, cpu_seconds(pid) - cpu
        if before_paced is not None:
            # the rate limit counts the requests of the last second
            time.sleep(1.1)
            before_paced()
        began, cpu = time.monotonic(), cpu_seconds(pid)
        latencies = sorted(pace(connections))
        share = (cpu_seconds(pid) - cpu) / (time.monotonic() - began)
    finally:
        for connection in connections:
            connection.close()
    return Result(
        name,
        done / took,
        done / max(used, 0.01),
        share,
        1000 * latencies[len(latencies) // 2],
        1000 * latencies[int(len(latencies) * 0.99)],
    )


def connect(number: int, port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10, source_address=(source_address(number), 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def warm_up(connection: socket.socket) -> None:
    """Send one request before the measurement, which excludes work that happens only once."""
    connection.sendall(REQUEST)
    answer = b""
    while not is_complete(answer):
        answer += receive(connection)
    check_status_200(answer)


def is_complete(answer: bytes) -> bool:
    head, blank, body = answer.partition(b"\r\n\r\n")
    if not blank:
        return False
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
    return len(body) >= int(length)


def saturate(connections: Sequence[socket.socket]) -> int:
    """Send requests on all connections as soon as they are answered; return the number of answers."""
    done, end = 0, time.monotonic() + SATURATED_SECONDS
    waiting = {connection: b"" for connection in connections}
    with selector_of(connections) as selector:
        for connection in connections:
            connection.send(REQUEST)
        while waiting:
            if time.monotonic() > end + ANSWER_TIMEOUT:
                raise SystemExit(f"{len(waiting)} answers never came")
            for key, _events in selector.select(0.1):
                connection = key.data
                if connection not in waiting:
                    continue
                waiting[connection] += receive(connection)
                if not is_complete(waiting[connection]):
                    continue
                check_status_200(waiting.pop(connection))
                if time.monotonic() < end:
                    done += 1
                    waiting[connection] = b""
                    connection.send(REQUEST)
    return done


def pace(connections: Sequence[socket.socket]) -> list[float]:
    """Send one request a second on each connection, evenly spread; return latencies in seconds.

    A latency counts from the moment at which the request was due.
    """
    latencies: list[float] = []
    began = time.monotonic()
    total = int(PACED_SECONDS * len(connections))
    due = {}
    partial: dict[socket.socket, bytes] = {}
    sent = 0
    with selector_of(connections) as selector:
        while len(latencies) < total:
            now = time.monotonic()
            if now > began + PACED_SECONDS + ANSWER_TIMEOUT:
                raise SystemExit(f"{total - len(latencies)} answers never came")
            while sent < total and began + sent / len(connections) <= now:
                connection = connections[sent % len(connections)]
                if connection in due:
                    break
                due[connection] = began + sent / len(connections)
                partial[connection] = b""
                connection.send(REQUEST)
                sent += 1
            for key, _events in selector.select(0.0005):
                connection = key.data
                if connection in due:
                    partial[connection] += receive(connection)
                    if is_complete(partial[connection]):
                        check_status_200(partial[connection])
                        latencies.append(time.monotonic() - due.pop(connection))
    return latencies


def receive(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise SystemExit("the server closed a connection")
    return data


def check_status_200(answer: bytes) -> None:
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the server answered {answer[:60]!r}")


class selector_of:
    """A selector over all connections."""

    def __init__(self, connections: Sequence[socket.socket]) -> None:
        self._selector = selectors.DefaultSelector()
        for connection in connections:
            connection.setblocking(True)
            self._selector.register(connection, selectors.EVENT_READ, connection)

    def __enter__(self) -> selectors.BaseSelector:
        return self._selector

    def __exit__(self, *exc_info: object) -> None:
        self._selector.close()


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def print_table(results: Sequence[Result]) -> None:
    print(f"{VMS} VMs, one connection each; one core for the server; Python {sys.version.split()[0]}")
    print("| server | requests/s, saturated | requests per CPU second | CPU share at 1,000/s | p50 ms | p99 ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for each in results:
        print(
            f"| {each.name} | {each.saturated:.0f} | {each.per_cpu_second:.0f} | {100 * each.paced_cpu:.0f} % "
            f"| {each.p50:.2f} | {each.p99:.2f} |"
        )
    ours, canned = results
    print(
        f"| ratio | {ours.saturated / canned.saturated:.2f} | {ours.per_cpu_second / canned.per_cpu_second:.2f} "
        f"| {ours.paced_cpu / max(canned.paced_cpu, 0.001):.2f} "
        f"| {ours.p50 / canned.p50:.2f} | {ours.p99 / canned.p99:.2f} |"
    )


class Canned(http.server.BaseHTTPRequestHandler):
    """Answers all requests with the same bytes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(CANNED_BODY)))
        self.end_headers()
        self.wfile.write(CANNED_BODY)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def serve_canned() -> None:
    http.server.ThreadingHTTPServer.request_queue_size = 2048
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canned)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:] == ["--canned"]:
        serve_canned()
    else:
        sys.exit(main())
