# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A master with the engine, minions that are VMs of one simulated set, and for attacks a hostile minion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.salt.azure import Azure, simulated
from support.salt.cluster import Cluster, cluster
from support.salt.event_bus import Event
from support.salt.minion import Minion
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MASTER_DIRS, MINION_DIRS, StepLog
from support.salt_simulation.driver import done, status
from support.wait import wait_until

HOSTILE = "a"
VMS = ("vm1", "vm2", "vm3")
UNMANAGED = "unmanaged"
# a VM of its own, for a minion that does not take part in what the engine does
SPARE = "spare"
# replaces the minion's module, and answers from a file
HOSTILE_MODULE = """
import json, os
__virtualname__ = "azure_events"
def __virtual__():
    return __virtualname__
def _answer(function, **given):
    with open(os.path.join(__opts__["root_dir"], "answers.json")) as file:
        return dict(json.load(file)[function], **given)
def status(event_id=None):
    return _answer("status")
def prepare(event_id=None, test=False):
    return _answer("prepare", event_id=event_id)
def recover(event_id=None, test=False):
    return _answer("recover", event_id=event_id)
def approve_prepared(event_id, resources, forced=False, event_type=None):
    return _answer("approve_prepared", event_id=event_id)
def flood(number):
    tag = "salt/beacon/%s/azure_events/scheduled" % __opts__["id"]
    for one in range(number):
        __salt__["event.send"](tag, {"event_id": "forged-%d" % one})
"""
HOSTILE_OUTCOMES = {"prepare": "prepared", "recover": "failed", "approve_prepared": "approved"}


class Fleet:
    def __init__(self, here: Cluster, azure: Azure) -> None:
        self.cluster = here
        self.azure = azure
        self.step_logs = {name: StepLog(here.minions[name]) for name in VMS}

    @property
    def hostile(self) -> Minion:
        """Return the hostile minion, which starts at its first use."""
        if HOSTILE not in self.cluster.minions:
            modules = self.cluster.folder / "hostile-modules"
            modules.mkdir()
            (modules / "azure_events.py").write_text(HOSTILE_MODULE)
            self.say(self.cluster.minion(HOSTILE, module_dirs=[str(modules)]))
            self.cluster.start(HOSTILE)
        return self.cluster.minions[HOSTILE]

    def say(self, minion: Minion, answer: Any = None) -> None:
        """Set what the hostile minion answers to a poll, by default no event."""
        answers = {
            "status": status(minion.name) if answer is None else answer,
            **{job: done(outcome) for job, outcome in HOSTILE_OUTCOMES.items()},
        }
        file = minion.folder / "answers.json"
        file.with_suffix(".draft").write_text(json.dumps(answers))
        file.with_suffix(".draft").replace(file)

    @property
    def engine_file(self) -> Path:
        return Path(self.cluster.master.config["cachedir"], "azure_events", "engine.sqlite")

    def wait_for(self, event_id: str, step: str) -> Event:
        return self.cluster.master.bus.wait(f"salt/azure_events/{event_id}/{step}")

    def finish(self, event_id: str) -> None:
        """Start and end the event, and wait for the recovery."""
        self.azure.simulator.advance(2)
        self.azure.end(event_id)
        self.wait_for(event_id, "recovered")

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the runner's status."""
        rows: list[dict[str, Any]] = self.cluster.master.run_runner("azure_events.status")["rows"]
        return rows

    def row(self, event_id: str, vm: str) -> dict[str, Any]:
        """Return the runner's row of one VM of an event."""
        return next(row for row in self.rows() if (row["event_id"], row["vm"]) == (event_id, vm))

    def check(self, event_id: str, approvals: int = 1, /, **counts: tuple[int, int]) -> None:
        """Assert the numbers of preparations and recoveries of each minion, and of approvals."""
        found = {name: self.step_logs[name].counts for name in counts}
        approved = len(self.azure.approvals(event_id))
        assert (found, approved) == (counts, approvals)

    def forge(self, tag: str, data: dict[str, Any]) -> None:
        """Have the hostile minion send an event to the master's bus."""
        self.hostile.ask("event.send", tag, data)

    def reset(self) -> None:
        """Start all processes, and empty the minions' logs of steps."""
        self.cluster.start()
        for step_log in self.step_logs.values():
            step_log.reset()
        if HOSTILE in self.cluster.minions:
            self.say(self.hostile)

    def end_all(self) -> None:
        """End all events, and wait until no minion is prepared."""
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
def running_fleet(installation: SaltInstallation) -> Iterator[Fleet]:
    """Run a fleet in an availability set that also has a VM without a minion.

    The engine has its defaults, but leaves minions whose names begin with that of the spare one to the tests.
    """
    groups: dict[str, Any] = {
        "web": {"kind": "availability_set", "vms": {name: {} for name in (*VMS, UNMANAGED)}},
        SPARE: {"kind": "standalone", "vms": {SPARE: {}}},
    }
    settings = {"minions": f"* and not {SPARE}*", "minions_type": "compound"}
    with (
        simulated(groups) as azure,
        cluster(installation, engines=[{"azure_events": {}}], azure_events=settings, **MASTER_DIRS) as here,
    ):
        for name in VMS:
            beacons = {"azure_events": [{"interval": 1}]}
            here.minion(name, azure_events={"endpoint": azure.endpoints[name]}, beacons=beacons, **MINION_DIRS)
        made = Fleet(here, azure)
        here.master.set_pillar(**{name: step_log.pillar() for name, step_log in made.step_logs.items()})
        here.start()
        yield made
