# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/salt.md is right: a user who writes its files and runs its commands, in its order, gets what it promises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from salt_lab.guide import Reader, blocks
from salt_lab.hook import Hook
from salt_lab.installed import Installed
from salt_lab.site import Site, site
from salt_lab.until import until

SCHEDULE, COMPLETE = "imds_simulator schedule", "imds_simulator complete"
FLEET, HELD, FORCED = "C7061BAC-AFDC-4513-B24B-AA5F13A16123", "4E1F8A52-6B7C-4D8E-9F0A-1B2C3D4E5F60", "5D2E9B63-7C8D-4E9F-8A1B-2C3D4E5F6071"
BY_HAND, BY_STATES, BY_REACTOR = "0B3AD7F5-3E2C-4B3B-9A5C-1F8E7D6C5B4A", "6D1C2B3A-4F5E-4A6B-8C7D-9E0F1A2B3C4D", "A7E9C1D2-5B4F-4E3D-9C8B-7A6F5E4D3C2B"


class Machines:
    """Masters and minions as they are installed, with nothing configured; and readers who follow the guide there."""

    def __init__(self, installed: Installed, end: ExitStack) -> None:
        self._installed = installed
        self._end = end

    def site(self, *minions: str, **config: Any) -> Site:
        here = self._end.enter_context(site(self._installed, [], **config))
        here.master.configure(pillar_roots={"base": [str(here.folder / "srv" / "pillar")]}, file_roots={"base": [str(here.folder / "srv" / "salt")]})
        for name in minions:
            here.minion(name)
        return here

    def reader(self, here: Site, *sections: str, **places: str) -> Reader:
        reader = Reader(here, sections, places)
        self._end.callback(reader.close)
        return reader


@pytest.fixture
def machines(installed: Installed) -> Iterator[Machines]:
    with ExitStack() as end:
        yield Machines(installed, end)


@pytest.mark.xdist_group("guide-one")
def test_first_reaction_and_maintenance_of_one_vm(machines: Machines) -> None:
    here = machines.site("web1")
    here.start()
    reader = machines.reader(here, "A first reaction in five minutes", "Maintenance of one VM")
    reader.go_on(SCHEDULE)
    until(reader.leaving.exists, "the file of the reaction")
    reader.go_on(COMPLETE)
    until(lambda: not reader.leaving.exists(), "the end of it")
    reader.go_on("azure_events.approve event_ids=" + BY_HAND)
    assert reader.leaving.exists() and reader.approvals(BY_HAND) == ["web1"]
    reader.go_on("azure_events.recover " + BY_HAND)
    assert not reader.leaving.exists()
    reader.go_on("azure_events.prepare_and_approve")
    assert reader.leaving.exists() and reader.approvals(BY_STATES) == ["web1"]
    reader.go_on("azure_events.recover concurrent=True")
    assert not reader.leaving.exists()
    reader.go_on(SCHEDULE)
    until(lambda: reader.approvals(BY_REACTOR), "the approval by the reactor")
    assert reader.leaving.exists()
    reader.go_on()
    until(lambda: not reader.leaving.exists(), "the recovery by the reactor")
    assert reader.approvals(BY_REACTOR) == ["web1"]


class Balancer:
    """The commands of the guide that leave and join the load balancer; each leaves a line."""

    def __init__(self, folder: Path) -> None:
        self._done = folder / "balancer"
        self.places = {}
        for name in ("leave-load-balancer", "join-load-balancer"):
            script = folder / name
            script.write_text('#!/bin/sh\necho "%s $EVENT_RESOURCE" >> %s\n' % (name.partition("-")[0], self._done))
            script.chmod(0o755)
            self.places["/usr/local/bin/" + name] = str(script)

    def count(self, line: str) -> int:
        return self._done.read_text().splitlines().count(line) if self._done.exists() else 0


@pytest.mark.xdist_group("guide-fleet")
def test_maintenance_of_a_fleet(machines: Machines) -> None:
    here = machines.site("web1", "web2")
    balancer = Balancer(here.folder)
    reader = machines.reader(here, "Maintenance of a fleet", **balancer.places)
    with Hook() as hook:
        reader.places["https://hooks.example.com"] = hook.address
        here.start()
        reader.go_on("--scenario")
        for number, minion in enumerate(here.minions.values()):
            minion.configure(azure_events={"endpoint": reader.places["http://127.0.0.1:%d" % (8169 + number)]})
        reader.go_on("azure_events.fleet")
        for event_id in (FLEET, HELD, FORCED):
            reader.go_on(SCHEDULE)
            here.master.bus.wait("salt/azure_events/%s/%s" % (event_id, "started" if event_id == FLEET else "held"))
            assert len(reader.approvals(event_id)) == (event_id == FLEET)
            reader.go_on(COMPLETE)
            here.master.bus.wait("salt/azure_events/%s/recovered" % event_id)
            assert len(reader.approvals(event_id)) == 1
        assert [balancer.count("%s %s" % line) for line in (("leave", "web1"), ("join", "web1"), ("leave", "web2"), ("join", "web2"))] == [3, 3, 2, 2]
        reader.go_on()
