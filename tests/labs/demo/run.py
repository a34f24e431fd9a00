# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One run: the load and the events of a plan, with one handling of events."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from demo import database, load
from demo.load import Answer
from demo.plan import PRIMARY, Event, Plan
from demo.result import Phases, Result
from demo.topology import Topology, open_topology
from support.wait import wait_until

# the first act of an interruption -> the last one, see support/hosts/apply_impact.py
LAST_ACT = {"Freeze": "thaw", "Reboot": "reboot", "Redeploy": "redeploy"}
EVENT_LIMIT = 600.0
WHOLE_LIMIT = 90.0
LOAD_END_LIMIT = 180.0
POOL_INTERVAL = 0.2


class Handling(NamedTuple):
    """A way of handling events.

    Attributes:
        install: makes the hosts ready; gets the topology and a folder for files.
        explain: returns logs for the report of a run that failed.
    """

    name: str
    install: Callable[[Topology, Path], None]
    explain: Callable[[Topology], str] = lambda topology: ""


def run(handling: Handling, plan: Plan, folder: Path) -> Result:
    """Run a plan in the namespaces of this process."""
    with open_topology(plan, folder / "hosts") as topology:
        handling.install(topology, folder)
        errors: list[str] = []
        output = folder / "answers"
        with out_of_pool(topology) as seconds_out, load_on(topology, output) as begin:
            phases = [phase for event in plan.events if (phase := undergo(topology, event, begin, errors))]
            time.sleep(max(plan.tail, begin + plan.seconds - time.time()))
        found = [Answer(*json.loads(line)) for line in output.read_text(encoding="utf-8").splitlines()]
        answers = sorted((each._replace(due=each.due - begin) for each in found), key=lambda each: each.due)
        stored = stored_orders(topology, errors)
        acknowledged = {answer.order for answer in answers if not answer.failure}
        result = Result(
            handling.name,
            tuple(answers),
            tuple(phases),
            tuple(sorted(acknowledged - stored)),
            {name: round(seconds, 1) for name, seconds in seconds_out.items()},
            topology.repeated(),
            tuple(errors + topology.outages.failed),
        )
        if result.problems():
            (folder / "logs").write_text(handling.explain(topology), encoding="utf-8")
        return result


@contextlib.contextmanager
def out_of_pool(topology: Topology) -> Iterator[dict[str, float]]:
    """Measure, and yield, the seconds in which each server was in maintenance, draining or down."""
    seconds: dict[str, float] = defaultdict(float)
    is_over = threading.Event()

    def watch() -> None:
        before = time.monotonic()
        while not is_over.wait(POOL_INTERVAL):
            with contextlib.suppress(OSError):
                servers, now = topology.servers(), time.monotonic()
                for name, status in servers.items():
                    # "UP 1/2" is on its way down, and still gets requests
                    seconds[name] += 0.0 if status.startswith("UP") else now - before
                before = now

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seconds
    finally:
        is_over.set()
        watcher.join()


@contextlib.contextmanager
def load_on(topology: Topology, output: Path) -> Iterator[float]:
    """Send requests, and yield the Unix time of their begin; at the end wait for the last answers."""
    plan = topology.plan
    arguments = [topology.balancer.address, str(plan.rate), str(plan.limits.client), str(output)]
    generator = subprocess.Popen([sys.executable, str(Path(load.__file__)), *arguments], stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: output.exists() and output.stat().st_size, "the first answer")
        yield time.time()
    finally:
        generator.terminate()
        generator.wait(LOAD_END_LIMIT)


def undergo(topology: Topology, event: Event, begin: float, errors: list[str]) -> Phases | None:
    """Announce an event at its time, wait until the interruption is over, and end the event."""
    plan, simulator, outages = topology.plan, topology.simulator, topology.outages
    time.sleep(max(0.0, begin + event.at - time.time()))
    host = event.target
    if host == PRIMARY:
        found = database.primaries(topology.databases)
        if len(found) != 1:
            errors.append(f"{event.kind} of the primary: not one host accepts writes, but {found}")
            return None
        host = found[0]
    impact = plan.impact_seconds(event.kind)
    body = {
        **{"type": event.kind, "resources": [host], "source": event.source, "notice": plan.notice},
        **{"duration": int(impact), "impact_for": impact, "started_for": EVENT_LIMIT},
    }
    outages.happened.clear()
    event_id, announced = str(simulator.post("/events", body)["id"]), time.time() - begin
    approved = started = None
    end = time.monotonic() + EVENT_LIMIT
    while (host, LAST_ACT[event.kind]) not in outages.happened:
        state = simulator.get(f"/events/{event_id}")
        approved = approved or (time.time() - begin if state["approved_by"] else None)
        started = started or (time.time() - begin if state["started_at"] else None)
        if outages.failed or time.monotonic() > end:
            errors.append(f"{event.kind} of {host}: not over within {EVENT_LIMIT:g} s, or failed")
            return None
        time.sleep(0.1)
    simulator.post(f"/events/{event_id}/complete")
    over = time.time() - begin
    # as Azure leaves time between the events of an availability set
    try:
        wait_until(topology.is_whole, "all hosts work again", timeout=WHOLE_LIMIT, pause=0.5)
    except AssertionError as error:
        errors.append(f"{error}{topology.servers()}, primaries: {database.primaries(topology.databases)}")
    primary = ", ".join(database.primaries(topology.databases))
    return Phases(event.kind, host, event.source, announced, approved, started or over, over, primary)


def stored_orders(topology: Topology, errors: list[str]) -> set[str]:
    found = database.primaries(topology.databases)
    if len(found) != 1:
        errors.append(f"at the end not one host accepts writes, but {found}")
        return set()
    return database.orders(topology.databases[found[0]])
