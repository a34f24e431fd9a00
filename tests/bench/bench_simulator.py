# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Number of VMs that one core serves: the simulator now, as it was before, and Python's own http.server.

    python tests/bench/bench_simulator.py [--rounds N] [--seconds N] [--only NAME] [--before COMMIT]

1,000 persistent connections, each from the source address of one VM, send requests from one core to a
server on another: first as fast as it answers, then 1,000 requests per second. Each round measures all
servers one after another, every second round in the opposite order. The figures are medians of the
rounds; a ratio is the median of the ratios in the rounds. Three rounds take four minutes.

As root it takes priority over other programs, and the servers run at once while latencies are measured.
Without root, latencies are comparable only on a machine without other work.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import priority
import simulator_servers
from simulator_clients import Clients
from simulator_servers import PACKAGE_ROOT, ROOT, VMS, Server
from table import print_table, ratio

BEFORE = "07bf835"
NOW, PAGE, OLD, CANNED = "now", "now, page open", "before", "http.server"
WARM_UP_SECONDS = 1.0


class Result(NamedTuple):
    """Rates in requests per second, latencies in ms, CPU as a share of one core in percent."""

    saturated: float
    per_cpu_second: float
    paced_cpu: float
    p50: float
    p99: float


class Contestant(NamedTuple):
    """A server, as a context manager."""

    start: Callable[[], contextlib.AbstractContextManager[Server]]
    page_open: bool = False


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each of the two measurements of a server")
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--only", action="append", help="measure this server only; repeatable")
    options = parser.parse_args()
    _allow_many_connections()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    gc.disable()
    with priority.highest(), simulator_servers.package_of(options.before) as before:
        contestants = _contestants(cores[0])
        if before is None:
            print(f"the repository does not have the commit {options.before}: there is no comparison with it")
        else:
            contestants.update(_former_contestants(before, cores[0]))
        names = [name for name in contestants if not options.only or name in options.only]
        rounds: list[dict[str, Result]] = []
        others = []
        for number in range(options.rounds):
            busy = _BusyMachine()
            results: dict[str, Result] = {}
            for name in names if number % 2 == 0 else reversed(names):
                results[name] = _measure(contestants[name], options.seconds, cores)
                gc.collect()
            rounds.append(results)
            others.append(busy.load_of_others())
            _print_results(f"round {number + 1}; load average {os.getloadavg()[0]:.1f}", [results], names)
    title = f"median of {len(rounds)} rounds; {VMS} VMs, a connection each; one core for the server"
    _print_results(f"{title}; Python {sys.version.split()[0]}; before: {options.before}", rounds, names)
    _print_ratios(rounds, names)
    print(f"\nprograms that are not part of the benchmark used {median(others):.2f} of {len(cores)} cores")
    print(f"latencies were measured with real-time priority: {'yes' if os.geteuid() == 0 else 'no'}")
    return 0


def _contestants(core: int) -> dict[str, Contestant]:
    def now() -> contextlib.AbstractContextManager[Server]:
        return simulator_servers.simulator(ROOT / PACKAGE_ROOT, core)

    return {
        NOW: Contestant(now),
        CANNED: Contestant(lambda: simulator_servers.canned(core)),
        PAGE: Contestant(now, page_open=True),
    }


def _former_contestants(package_root: Path, core: int) -> dict[str, Contestant]:
    def old() -> contextlib.AbstractContextManager[Server]:
        return simulator_servers.simulator(package_root, core)

    return {OLD: Contestant(old)}


def _measure(contestant: Contestant, seconds: float, cores: Sequence[int]) -> Result:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contestant.start())
        server.set_rate_limit(0)
        clients = Clients(server.port, VMS)
        stack.callback(clients.close)
        if contestant.page_open:
            stack.enter_context(simulator_servers.open_page(server, cores[-1]))
        clients.saturate(WARM_UP_SECONDS)
        began, used = time.monotonic(), server.cpu_seconds()
        answers = clients.saturate(seconds)
        took, used = time.monotonic() - began, server.cpu_seconds() - used
        # the rate limit counts the requests of the last second
        time.sleep(1.1)
        server.set_rate_limit(5)
        stack.enter_context(priority.real_time(server.pid))
        began, paced_used = time.monotonic(), server.cpu_seconds()
        latencies = sorted(clients.pace(seconds))
        share = (server.cpu_seconds() - paced_used) / (time.monotonic() - began)
    return Result(
        answers / took,
        answers / max(used, 0.01),
        100 * share,
        1000 * latencies[len(latencies) // 2],
        1000 * latencies[int(len(latencies) * 0.99)],
    )


def _print_results(title: str, rounds: Sequence[dict[str, Result]], names: Sequence[str]) -> None:
    rows = []
    for name in names:
        saturated, per_cpu_second, cpu, p50, p99 = (median(each) for each in zip(*(each[name] for each in rounds)))
        rows.append([name, f"{saturated:,.0f}", f"{per_cpu_second:,.0f}", f"{cpu:.1f} %", f"{p50:.2f}", f"{p99:.2f}"])
    columns = ["server", "requests/s, saturated", "requests per CPU second", "CPU at 1,000/s", "p50 ms", "p99 ms"]
    print_table(title, columns, rows)


def _print_ratios(rounds: Sequence[dict[str, Result]], names: Sequence[str]) -> None:
    pairs = [
        (NOW, OLD),
        (NOW, CANNED),
        (PAGE, NOW),
        (OLD, CANNED),
    ]
    rows = []
    for ours, other in pairs:
        if ours in names and other in names:
            ratios = [[a / b if b else 0.0 for a, b in zip(each[ours], each[other])] for each in rounds]
            rows.append([f"{ours} : {other}", *(ratio(median(column), 1.0) for column in zip(*ratios))])
    print_table("ratios", ["servers", *Result._fields], rows)


class _BusyMachine:
    """How much of the machine other programs use from now on."""

    def __init__(self) -> None:
        self._began, self._total, self._own = time.monotonic(), _machine_seconds(), _own_seconds()

    def load_of_others(self) -> float:
        """Return the number of cores that other programs have used on average."""
        others = (_machine_seconds() - self._total) - (_own_seconds() - self._own)
        return max(0.0, others / (time.monotonic() - self._began))


def _machine_seconds() -> float:
    """Return the time in which the cores were busy, with stolen time."""
    fields = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Return the time of this process and of its children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def _allow_many_connections() -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536, hard))


if __name__ == "__main__":
    sys.exit(main())
