# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compare a maintenance by Salt's engine with an orchestration as a user would write it.

    python tests/bench/bench_salt_maintenance.py [MAINTENANCES] [CHECKOUT]

Takes about four minutes for MAINTENANCES (default 15). CHECKOUT is one of this repository before it
had an engine, whose reactor and orchestration run in addition. They run by turns, each with a
master of its own.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table, ratio

from support import environments
from support.salt.azure import Azure, simulated
from support.salt.cluster import TREE, Cluster, cluster
from support.salt.process_guard import children
from support.salt.salt_installation import SaltInstallation
from support.wait import wait_until

OWN = Path(__file__).parent / "salt" / "maintenance"
# seconds in which the CPU of masters without an event is counted, and for which they may go on
# after a recovery
IDLE = 20.0
SETTLE = 3.0


class Contestant(NamedTuple):
    """How one master does a maintenance.

    ``prepare`` and ``recover`` are pillar keys for the commands of these steps, below ``section``, the pillar key
    of a minion.
    """

    file_roots: list[Path]
    config: dict[str, Any]
    section: str = "azure_events"
    prepare: str = "prepare"
    recover: str = "recover"

    def pillar(self, folder: Path) -> dict[str, Any]:
        commands = [f"date +{step}:%s.%N >> {folder}/steps" for step in ("prepare", "recover")]
        steps: list[Any] = [[command] for command in commands] if self.section == "azure_events" else list(commands)
        return {self.section: dict(zip((self.prepare, self.recover), steps))}


class Maintenance(NamedTuple):
    """Seconds after the announcement, and CPU seconds of the master's processes."""

    prepared: float
    approved: float
    recovered: float
    cpu: float


def contestants(checkout: str | None) -> dict[str, Contestant]:
    reaction = "salt/beacon/*/azure_events/*"
    found = {
        "engine": Contestant([TREE], {"engines": [{"azure_events": {}}]}),
        "orchestration": Contestant([TREE, OWN], {"reactor": [{reaction: [str(OWN / "reactor.sls")]}]}, "commands"),
    }
    if checkout:
        tree = Path(checkout, "salt").resolve()
        config = {"reactor": [{reaction: [str(tree / "reactor" / "azure_events.sls")]}]}
        found["before"] = Contestant([tree], config, prepare="drain", recover="undrain")
    return found


class Runner:
    """One contestant with its master and minions."""

    def __init__(self, name: str, here: Cluster, azure: Azure) -> None:
        self.minions = [f"{name}{number}" for number in (1, 2)]
        self._site = here
        self._azure = azure

    def maintain(self, idle: float) -> Maintenance:
        """Run one maintenance to its last recovery; ``idle``: CPU seconds per second of the idle master."""
        for minion in self.minions:
            self._steps(minion).unlink(missing_ok=True)
        before, began, wall = self.cpu(), time.monotonic(), time.time()
        event_id = self._azure.announce(*self.minions, kind="Freeze", notice="4h")
        wait_until(lambda: self._azure.approvals(event_id), "the approval")
        approved = time.time() - wall
        self._azure.simulator.advance(2)
        self._azure.end(event_id)
        over = time.time()
        recovered = max(self._wait(minion, "recover") for minion in self.minions) - over
        prepared = max(self._wait(minion, "prepare") for minion in self.minions) - wall
        time.sleep(SETTLE)
        spent = self.cpu() - before - idle * (time.monotonic() - began)
        return Maintenance(prepared, approved, recovered, spent)

    def cpu(self) -> float:
        """CPU seconds of the master's processes, those that have ended included."""
        process = self._site.master.process
        assert process is not None
        ticks, waiting = 0, [process.pid]
        while waiting:
            pid = waiting.pop()
            waiting += children(pid)
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _steps(self, minion: str) -> Path:
        return self._site.minions[minion].folder / "steps"

    def _wait(self, minion: str, step: str) -> float:
        """Time at which a step ran first."""

        def found() -> list[str]:
            file = self._steps(minion)
            return [line for line in file.read_text().split() if line.startswith(step)] if file.exists() else []

        return float(wait_until(found, f"{step} on {minion}")[0].partition(":")[2])


@contextmanager
def runners(names: dict[str, Contestant]) -> Iterator[dict[str, Runner]]:
    installation = SaltInstallation.at(environments.salt(3008))
    groups = {name: {"kind": "availability_set", "vms": {f"{name}{number}": {} for number in (1, 2)}} for name in names}
    with ExitStack() as stack:
        azure = stack.enter_context(simulated(groups))
        found = {}
        for name, contestant in names.items():
            here = stack.enter_context(cluster(installation, contestant.file_roots, **contestant.config))
            found[name] = Runner(name, here, azure)
            for minion in found[name].minions:
                beacons = {"azure_events": [{"interval": 1}, {"endpoint": azure.endpoints[minion]}]}
                here.minion(minion, azure_events={"endpoint": azure.endpoints[minion]}, beacons=beacons)
            here.master.set_pillar(
                **{minion: contestant.pillar(here.minions[minion].folder) for minion in found[name].minions}
            )
            here.master.start()
            here.master.run("salt-run", "saltutil.sync_all")
            here.master.kill()
            here.start()
            here.master.ask_all("*", "saltutil.sync_all")
        yield found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    names = contestants(sys.argv[2] if len(sys.argv) > 2 else None)
    with runners(names) as found:
        time.sleep(IDLE)
        before, began = {name: runner.cpu() for name, runner in found.items()}, time.monotonic()
        time.sleep(IDLE)
        idle = {name: (runner.cpu() - before[name]) / (time.monotonic() - began) for name, runner in found.items()}
        # the first maintenance of each is for what is made and loaded once
        done = [{name: runner.maintain(idle[name]) for name, runner in found.items()} for _number in range(count + 1)][
            1:
        ]
    rows = []
    for text, field in (
        ("announcement to the last preparation, s", "prepared"),
        ("announcement to the approval, s", "approved"),
        ("end to the last recovery, s", "recovered"),
        ("CPU of the master for one maintenance, s", "cpu"),
    ):
        medians = {name: statistics.median(getattr(one[name], field) for one in done) for name in found}
        rows.append(
            [
                text,
                *(f"{medians[name]:.2f}" for name in found),
                *(ratio(medians["engine"], medians[name]) for name in list(found)[1:]),
            ]
        )
    ratios = (ratio(idle["engine"], idle[name]) for name in list(found)[1:])
    rows.append(["CPU of the master without an event, s/h", *(f"{3600 * idle[name]:.0f}" for name in found), *ratios])
    print_table(
        f"A maintenance of two minions (Salt 3008, median of {count})",
        ["", *found, *(f"engine / {name}" for name in list(found)[1:])],
        rows,
    )


if __name__ == "__main__":
    main()
