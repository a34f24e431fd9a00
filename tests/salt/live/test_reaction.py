# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""From the beacon through reactor and orchestration to an approval and to recovery, over two minions of one availability set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from salt_lab.azure import Azure, simulated
from salt_lab.installed import Installed
from salt_lab.minion import Minion
from salt_lab.site import Site, site
from salt_lab.until import until

pytestmark = pytest.mark.xdist_group("reaction")

VMS = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}, "unmanaged": {}}}}
REACTOR = [{"salt/beacon/*/azure_events/*": ["salt://reactor/azure_events.sls"]}]


class Journal:
    """What the commands of a minion's pillar did. ``drain`` waits for the file ``go``, and fails where there is a file ``fail``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.start_over()

    def start_over(self) -> None:
        for name in ("go", "fail", "done"):
            (self._folder / name).unlink(missing_ok=True)

    def pillar(self) -> dict[str, Any]:
        wait = "while ! test -e go; do test -e fail && exit 1; sleep 0.1; done"
        words = {
            "drain": "cd %s && echo draining >> done && %s && echo drained >> done" % (self._folder, wait),
            "undrain": "cd %s && echo undrained >> done" % self._folder,
        }
        return {"azure_events": {name: [command] for name, command in words.items()}}

    def allow(self) -> None:
        (self._folder / "go").touch()

    def refuse(self) -> None:
        (self._folder / "fail").touch()

    @property
    def lines(self) -> list[str]:
        done = self._folder / "done"
        return done.read_text().split() if done.exists() else []

    def wait(self, *lines: str) -> None:
        until(lambda: self.lines[: len(lines)] == list(lines), lambda: "%s in %s, where there is %s" % (lines, self._folder, self.lines))


class Fleet:
    def __init__(self, here: Site, azure: Azure) -> None:
        self.site = here
        self.azure = azure
        self.journals = {name: Journal(here.minions[name].folder) for name in ("vm1", "vm2")}

    @property
    def vm1(self) -> Minion:
        return self.site.minions["vm1"]

    def allow(self) -> None:
        for journal in self.journals.values():
            journal.allow()

    def wait(self, *lines: str) -> None:
        for journal in self.journals.values():
            journal.wait(*lines)

    def wait_for_approval(self, event_id: str) -> list[str]:
        return until(lambda: self.azure.approvals(event_id), "an approval of %s" % event_id)


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    """One of its own, which nobody else watches."""
    with simulated(VMS) as running:
        yield running


@pytest.fixture(scope="module")
def reacting(installed: Installed, azure: Azure) -> Iterator[Fleet]:
    # five seconds for an answer, as by default, may be too little on a machine that has much else to do
    with site(installed, reactor=REACTOR, azure_events={"answer": 15}) as here:
        for name in ("vm1", "vm2"):
            beacon = [{"interval": 1}, {"repeat": 10}]
            # vm2 is one that only tells what it would do, unless it is told otherwise
            here.minion(name, azure_events={"endpoint": azure.endpoints[name]}, beacons={"azure_events": beacon}, test=name == "vm2")
        fleet = Fleet(here, azure)
        here.master.set_pillar(**{name: journal.pillar() for name, journal in fleet.journals.items()})
        here.start()
        here.master.run("salt-run", "saltutil.sync_all")
        here.master.ask_all("*", "saltutil.sync_all")
        yield fleet


@pytest.fixture
def fleet(reacting: Fleet) -> Fleet:
    for journal in reacting.journals.values():
        journal.start_over()
    return reacting


def test_all_are_drained_one_approves_once_and_all_recover(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait("draining")
    fleet.journals["vm1"].allow()
    fleet.journals["vm1"].wait("draining", "drained")
    assert azure.approvals(event_id) == []
    fleet.journals["vm2"].allow()
    fleet.wait_for_approval(event_id)
    azure.simulator.advance(2)
    assert fleet.journals["vm1"].lines == ["draining", "drained"]
    azure.end(event_id)
    fleet.wait("draining", "drained", "undrained")
    assert len(azure.approvals(event_id)) == 1


def test_who_fails_to_drain_keeps_the_approval_back_and_recovers(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait("draining")
    fleet.journals["vm1"].allow()
    fleet.journals["vm2"].refuse()
    fleet.journals["vm1"].wait("draining", "drained")
    for name in ("vm1", "vm2"):
        azure.wait_for_looks(name, more=6)
    assert azure.approvals(event_id) == []
    azure.end(event_id)
    fleet.journals["vm1"].wait("draining", "drained", "undrained")
    until(lambda: fleet.journals["vm2"].lines[-1] == "undrained", "the recovery of vm2")
    assert azure.approvals(event_id) == []


def test_a_cancelled_event_ends_in_recovery(fleet: Fleet, azure: Azure) -> None:
    fleet.allow()
    event_id = azure.announce("vm1", kind="Redeploy", notice="4h", hold=True)
    fleet.wait_for_approval(event_id)
    azure.cancel(event_id)
    fleet.journals["vm1"].wait("draining", "drained", "undrained")
    assert fleet.journals["vm2"].lines == []


def test_a_vm_that_is_nobodys_minion_keeps_the_approval_back(fleet: Fleet, azure: Azure) -> None:
    fleet.allow()
    event_id = azure.announce("vm1", "unmanaged", kind="Freeze", notice="4h")
    fleet.journals["vm1"].wait("draining", "drained")
    azure.wait_for_looks("vm1", more=6)
    assert azure.approvals(event_id) == []
    azure.end(event_id)
    fleet.journals["vm1"].wait("draining", "drained", "undrained")


def test_a_minion_that_reboots_recovers_when_it_is_back(fleet: Fleet, azure: Azure) -> None:
    fleet.allow()
    event_id = azure.announce("vm1", notice="4h")
    fleet.wait_for_approval(event_id)
    fleet.vm1.kill()
    azure.simulator.advance(2)
    azure.end(event_id)
    fleet.vm1.start()
    fleet.journals["vm1"].wait("draining", "drained", "undrained")
    assert len(azure.approvals(event_id)) == 1


def test_the_runner_says_who_is_concerned(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "unmanaged", kind="Freeze", notice="4h")
    fleet.vm1.tells("scheduled", event_id=event_id)
    seen = fleet.site.master.run("salt-run", "azure_events.fleet")[event_id]
    assert seen["minions"] == {"vm1": "vm1", "unmanaged": None}
    looked = fleet.site.master.run("salt-run", "azure_events.look", event_id, "*")
    assert looked["listed"] is True and looked["unknown_resources"] == ["unmanaged"]
    fleet.allow()
