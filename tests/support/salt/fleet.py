# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A master with the engine, minions that are VMs of one simulated set, and for attacks a hostile minion."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.salt.azure import Azure, simulated
from support.salt.cluster import Cluster, cluster
from support.salt.event_bus import Event
from support.salt.minion import Minion
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MASTER_DIRS, MINION_DIRS, StepLog, hostile, say
from support.wait import wait_until

HOSTILE = "a"
VMS = ("vm1", "vm2", "vm3")
UNMANAGED = "unmanaged"
# a VM of its own, for a minion that does not take part in what the engine does
SPARE = "spare"


class Fleet:
    """``notes`` are counts and times, which become properties of the test in JUnit's XML."""

    def __init__(self, here: Cluster, azure: Azure, honest: Sequence[str]) -> None:
        self.cluster = here
        self.azure = azure
        self.step_logs = {name: StepLog(here.minions[name]) for name in honest}
        self.notes: list[tuple[str, object]] = []

    @property
    def hostile(self) -> Minion:
        """Return the hostile minion, which starts at its first use."""
        if HOSTILE not in self.cluster.minions:
            hostile(self.cluster, HOSTILE)
            self.cluster.start(HOSTILE)
        return self.cluster.minions[HOSTILE]

    @property
    def engine_file(self) -> Path:
        return Path(self.cluster.master.config["cachedir"], "azure_events", "engine.sqlite")

    def steps(self, event_id: str) -> list[Event]:
        return self.cluster.master.bus.events(f"salt/azure_events/{event_id}/*")

    def wait_for(self, event_id: str, step: str, **fields: Any) -> Event:
        return self.cluster.master.bus.wait(f"salt/azure_events/{event_id}/{step}", **fields)

    def finish(self, event_id: str) -> None:
        """Start and end the event, and wait for the recovery."""
        self.azure.simulator.advance(2)
        self.azure.end(event_id)
        self.wait_for(event_id, "recovered")

    def counts(self, *names: str) -> list[tuple[int, int]]:
        return [self.step_logs[name].counts for name in names]

    def run(self, function: str, *words: Any, **named: Any) -> Any:
        """Return what a function of the runner returned."""
        return self.cluster.master.run_runner(f"azure_events.{function}", *words, **named)

    def row(self, event_id: str, vm: str) -> dict[str, Any]:
        """Return the runner's row of one VM of an event; empty while the engine does not know the event."""
        rows = [row for row in self.run("status")["rows"] if (row["event_id"], row["vm"]) == (event_id, vm)]
        return dict(rows[0]) if rows else {}

    def wait_for_reason(self, event_id: str, vm: str, text: str, column: str = "why_not") -> None:
        wait_until(
            lambda: text in (self.row(event_id, vm).get(column) or ""),
            lambda: f"{text!r} in {self.row(event_id, vm)}",
        )

    def check(self, event_id: str, approvals: int = 1, /, **counts: tuple[int, int]) -> None:
        """Assert the numbers of preparations and recoveries of each minion, and of approvals."""
        found = {name: self.step_logs[name].counts for name in counts}
        approved = len(self.azure.approvals(event_id))
        shown = ["%s %d/%d" % (name, *pair) for name, pair in found.items()]
        if len(shown) > len(VMS) and len(set(found.values())) == 1:
            shown = [f"{len(found)} minions {shown[0].split()[1]}"]
        self.notes.append(("counts", f"{', '.join(shown)}; {approved}"))
        assert (found, approved) == (counts, approvals)

    @contextmanager
    def measured(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.notes.append(("measured", f"{what} {time.monotonic() - began:.1f} s"))

    def return_master(self) -> None:
        """Start the stopped master, and wait for the first answer of a minion."""
        with self.measured("minions answer"):
            self.cluster.master.start()
            self.cluster.master.wait_for(next(iter(self.step_logs)))

    def listed(self, event_id: str, *resources: str, **more: Any) -> dict[str, Any]:
        """Return the event as a hostile minion reports it."""
        event = {
            "event_id": event_id,
            "event_type": "Reboot",
            "status": "Scheduled",
            "resources": list(resources),
            "readable": True,
            "not_before": None,
        }
        return {**event, "selected": True, "not_selected_because": "", **more}

    def forge(self, tag: str, data: dict[str, Any]) -> None:
        """Have the hostile minion send an event to the master's bus."""
        self.hostile.ask("event.send", tag, data)

    def hint(self, minion: str, event_id: str = "forged") -> None:
        """Have the hostile minion send a beacon's event in the name of a minion."""
        self.forge(f"salt/beacon/{minion}/azure_events/scheduled", {"event_id": event_id, "id": minion})

    def reset(self) -> None:
        """Start all processes, and empty the minions' logs of steps."""
        self.cluster.start()
        for step_log in self.step_logs.values():
            step_log.reset()
        if HOSTILE in self.cluster.minions:
            say(self.hostile)

    def end_all(self) -> None:
        """End all events, and wait until no minion is prepared."""
        self.azure.simulator.delete("/faults")
        self.azure.end_all()
        for step_log in self.step_logs.values():
            step_log.mend()
        self.cluster.start()
        wait_until(lambda: not self._prepared(), lambda: f"the recovery of {self._prepared()} after the test")

    def _prepared(self) -> list[str]:
        """Return the minions that have a record of a preparation, or do not answer."""
        names = list(self.step_logs)
        answers = self.cluster.master.ask_all(names, "azure_events.status", tgt_type="list")
        return [name for name in names if not _is_idle(answers.get(name))]


def _is_idle(status: Any) -> bool:
    return isinstance(status, dict) and not status["records"] and not status["working"]


@contextmanager
def running_fleet(
    installation: SaltInstallation,
    honest: Sequence[str] = VMS,
    watch: Sequence[dict[str, Any]] = (),
    settings: dict[str, Any] | None = None,
    **master: Any,
) -> Iterator[Fleet]:
    """Run a fleet in an availability set that also has a VM without a minion.

    ``watch`` are options of the beacon, ``settings`` those of the engine.
    """
    groups: dict[str, Any] = {
        "web": {"kind": "availability_set", "vms": {name: {} for name in (*honest, UNMANAGED)}},
        SPARE: {"kind": "standalone", "vms": {SPARE: {}}},
    }
    with (
        simulated(groups) as azure,
        cluster(
            installation, engines=[{"azure_events": {}}], azure_events=settings or {}, **MASTER_DIRS, **master
        ) as here,
    ):
        for name in honest:
            beacon = {"azure_events": [{"interval": 1}, *watch]}
            here.minion(name, azure_events={"endpoint": azure.endpoints[name]}, beacons=beacon, **MINION_DIRS)
        made = Fleet(here, azure, honest)
        here.master.set_pillar(**{name: step_log.pillar() for name, step_log in made.step_logs.items()})
        here.start()
        yield made
