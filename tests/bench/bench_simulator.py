# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Number of VMs that the simulator serves on one core.

    python tests/bench/bench_simulator.py [ROUNDS [SECONDS]]

1,000 persistent connections, each from the source address of one VM, send requests from one core to a
simulator on another: first as fast as it answers, then 1,000 requests per second. The figures are medians
of the rounds. Latencies count only on a machine without other work.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import socket
import sys
import time
from pathlib import Path
from statistics import median

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from bench_hook_runner import cpu_seconds
from table import print_table

from support import simulator_process

VMS = 1000
GROUP_SIZE = 50
WARM_UP_SECONDS = 1.0
# seconds
CONNECT_TIMEOUT = 10.0
ANSWER_TIMEOUT = 10.0
POLL = (
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n\r\n"
)


class Clients:
    """VMs that poll, each on a connection from a source address of its own."""

    def __init__(self, port: int) -> None:
        self._poll = select.epoll()
        self._partial: dict[int, bytes] = {}
        self._by_descriptor: dict[int, socket.socket] = {}
        for number in range(VMS):
            connection = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT, (source_address(number), 0))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._by_descriptor[connection.fileno()] = connection
            self._poll.register(connection, select.EPOLLIN)

    def close(self) -> None:
        self._poll.close()
        for connection in self._by_descriptor.values():
            connection.close()

    def saturate(self, seconds: float) -> int:
        """Send requests on all connections as soon as they are answered; return the number of answers."""
        done, end = 0, time.monotonic() + seconds
        for descriptor in self._by_descriptor:
            self._send(descriptor)
        while self._partial:
            answered = self._answered(0.1)
            now = time.monotonic()
            if now > end + ANSWER_TIMEOUT:
                raise SystemExit(f"{len(self._partial)} answers never came")
            if now < end:
                done += len(answered)
                for descriptor in answered:
                    self._send(descriptor)
        return done

    def pace(self, seconds: float) -> list[float]:
        """Send one request a second on each connection, evenly spread; return latencies in seconds.

        A latency counts from the moment at which the request was due. Waits actively, because a sleep
        would add up to a millisecond to each latency.
        """
        latencies: list[float] = []
        descriptors, began = list(self._by_descriptor), time.monotonic()
        total, sent = int(seconds * VMS), 0
        due: dict[int, float] = {}
        while len(latencies) < total:
            now = time.monotonic()
            if now > began + seconds + ANSWER_TIMEOUT:
                raise SystemExit(f"{total - len(latencies)} answers never came")
            while sent < total and began + sent / VMS <= now:
                descriptor = descriptors[sent % VMS]
                if descriptor in due:
                    break
                due[descriptor] = began + sent / VMS
                self._send(descriptor)
                sent += 1
            answered = self._answered(0)
            now = time.monotonic()
            latencies += [now - due.pop(descriptor) for descriptor in answered]
        return latencies

    def _send(self, descriptor: int) -> None:
        self._partial[descriptor] = b""
        self._by_descriptor[descriptor].send(POLL)

    def _answered(self, timeout: float) -> list[int]:
        """Read what has arrived and return the descriptors whose answers are complete."""
        answered = []
        for descriptor, _event in self._poll.poll(timeout):
            data = self._by_descriptor[descriptor].recv(65536)
            if not data:
                raise SystemExit("the server closed a connection")
            self._partial[descriptor] += data
            if _is_complete(self._partial[descriptor]):
                if not self._partial[descriptor].startswith(b"HTTP/1.1 200"):
                    raise SystemExit(f"the server answered {data[:60]!r}")
                del self._partial[descriptor]
                answered.append(descriptor)
        return answered


def _is_complete(answer: bytes) -> bool:
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    name = answer.find(b"Content-Length: ")
    return len(answer) - end - 4 >= int(answer[name + 16 : answer.index(b"\r", name)])


def source_address(number: int) -> str:
    """Return the loopback address from which VM ``number`` sends its requests."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


def scenario() -> dict[str, object]:
    """Return 20 groups of 50 VMs, with an event in each."""
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
        "knobs": {"rate_limit": 0},
    }


def measure(seconds: float, cores: list[int]) -> tuple[float, ...]:
    """Return requests a second, requests in a CPU second, CPU at 1,000 a second in percent, and p50 and p99 in ms."""
    # the simulator and its threads get the first core from this process
    os.sched_setaffinity(0, {cores[0]})
    with simulator_process.start(scenario(), ["--quiet"]) as azure:
        os.sched_setaffinity(0, {cores[-1]})
        pid = azure.process.pid
        clients = Clients(int(azure.endpoints["vm0"].rpartition(":")[2]))
        clients.saturate(WARM_UP_SECONDS)
        began, used = time.monotonic(), cpu_seconds(pid)
        answers = clients.saturate(seconds)
        took, used = time.monotonic() - began, cpu_seconds(pid) - used
        # the rate limit counts the requests of the last second
        time.sleep(1.1)
        azure.post("/knobs", {"rate_limit": 5})
        began, paced_used = time.monotonic(), cpu_seconds(pid)
        latencies = sorted(clients.pace(seconds))
        share = (cpu_seconds(pid) - paced_used) / (time.monotonic() - began)
        clients.close()
    return (
        answers / took,
        answers / used,
        100 * share,
        1000 * latencies[len(latencies) // 2],
        1000 * latencies[int(len(latencies) * 0.99)],
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    cores = sorted(os.sched_getaffinity(0))
    gc.disable()
    results = [measure(seconds, cores) for _round in range(rounds)]
    saturated, per_cpu_second, cpu, p50, p99 = (median(each) for each in zip(*results))
    columns = ["requests/s, saturated", "requests per CPU second", "CPU at 1,000/s", "p50 ms", "p99 ms"]
    row = [f"{saturated:,.0f}", f"{per_cpu_second:,.0f}", f"{cpu:.1f} %", f"{p50:.2f}", f"{p99:.2f}"]
    title = f"The simulator for {VMS} VMs, a connection each; one core for the server; median of {rounds} rounds"
    print_table(title, columns, [row])
    print(f"Python {sys.version.split()[0]}, load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
