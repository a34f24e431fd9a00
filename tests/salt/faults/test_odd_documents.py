# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Documents of IMDS that the simulator cannot give: hostile names, disagreeing backends."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from support.salt.cluster import Cluster, cluster
from support.salt.salt_installation import SaltInstallation
from support.salt.scripted import ScriptedImds
from support.salt.tree_minion import MASTER_DIRS, MINION_DIRS, StepLog
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-documents")]

POLLS = 40
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def imds() -> Iterator[ScriptedImds]:
    with ScriptedImds() as made:
        yield made


@pytest.fixture(scope="module")
def here(installation: SaltInstallation, imds: ScriptedImds) -> Iterator[Cluster]:
    with cluster(installation, engines=[{"azure_events": {}}], **MASTER_DIRS) as made:
        minion = made.minion(
            "vm1", azure_events={"endpoint": imds.endpoint}, beacons={"azure_events": [{"interval": 1}]}, **MINION_DIRS
        )
        made.master.set_pillar(vm1=StepLog(minion).pillar())
        made.start()
        yield made


@pytest.fixture
def step_log(here: Cluster, imds: ScriptedImds) -> Iterator[StepLog]:
    made = StepLog(here.minions["vm1"])
    made.reset()
    yield made
    imds.next, imds.events = [], []
    wait_until(lambda: here.minions["vm1"].ask("azure_events.status")["records"] == [], "the recovery after the test")


def drawn(kind: str) -> Iterator[bool]:
    """Whether the backend that answers lists the event."""
    if kind == "at random":
        drawing = random.Random(kind)
        return (drawing.random() < 0.5 for _look in itertools.count())
    return itertools.cycle([True, False] if kind == "1:1" else [True, True, False, False])


@pytest.mark.parametrize("kind", ["1:1", "2:2", "at random"])
def test_two_backends_that_disagree(
    here: Cluster, imds: ScriptedImds, step_log: StepLog, kind: str, request: pytest.FixtureRequest
) -> None:
    minion, bus = here.minions["vm1"], here.master.bus
    event_id = f"E{next(NUMBERS)}"
    imds.approved.clear()
    event = [imds.event(event_id, "vm1")]
    imds.next = [event if there else [] for there in itertools.islice(drawn(kind), POLLS)]
    wait_until(lambda: not imds.next, "the end of the disagreement")
    imds.events = event
    bus.wait(f"salt/azure_events/{event_id}/approved")
    imds.events = [imds.event(event_id, "vm1", status="Started")]
    minion.wait_for_event("started", event_id=event_id)
    imds.events = []
    wait_until(
        lambda: step_log.counts[0] == step_log.counts[1] > 0,
        lambda: "as many recoveries as preparations: %d, %d" % step_log.counts,
    )
    sent = {change: len(minion.events(change, event_id=event_id)) for change in ("scheduled", "gone")}
    request.node.user_properties += [
        ("counts", "vm1 %d/%d; %d" % (*step_log.counts, imds.approved.count(event_id))),
        ("measured", f"{sent['scheduled']} scheduled, {sent['gone']} gone on the bus, {POLLS} documents"),
    ]
    # at random, the event may be absent often enough in a row to be over, and begin again
    assert step_log.counts[0] == 1 or kind == "at random"
    assert step_log.counts[0] == step_log.counts[1] and imds.approved == [event_id]
    assert max(sent.values()) <= POLLS // 6


def rows(here: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = here.master.run_runner("azure_events.status")["rows"]
    return found


@pytest.mark.parametrize(
    "name", ["vm\x7f1", "vm\ufffe", "{{ 7 * 7 }}", "x" * 1100], ids=["DEL", "U+FFFE", "Jinja", "1,100 characters"]
)
def test_hostile_name_of_a_resource(
    here: Cluster, imds: ScriptedImds, step_log: StepLog, name: str, request: pytest.FixtureRequest
) -> None:
    """The event is prepared and not approved; another event is handled."""
    imds.approved.clear()
    event_id = f"N{next(NUMBERS)}"
    imds.events = [imds.event(event_id, "vm1", name), imds.event(event_id + "-good", "vm1")]
    step_log.wait("prepare")
    wait_until(lambda: imds.approved, "the approval of the other event")
    wait_until(
        lambda: any(row["event_id"] == event_id and row["withheld"] for row in rows(here)),
        lambda: f"the reason in {rows(here)}",
    )
    imds.events = []
    step_log.wait("recover")
    request.node.user_properties.append(
        ("counts", "vm1 %d/%d; %d of the good event" % (*step_log.counts, len(imds.approved)))
    )
    assert (step_log.counts, imds.approved) == ((1, 1), [event_id + "-good"])


@pytest.mark.parametrize("event_id", ["E\x7f1", "E\ufffe1", "E" * 1100], ids=["DEL", "U+FFFE", "1,100 characters"])
def test_hostile_id_of_an_event(
    here: Cluster, imds: ScriptedImds, step_log: StepLog, event_id: str, request: pytest.FixtureRequest
) -> None:
    """Another event is handled, whatever happens to this one."""
    imds.approved.clear()
    number = next(NUMBERS)
    good = f"G{number}"
    imds.events = [imds.event(f"{number}{event_id}", "vm1"), imds.event(good, "vm1")]
    step_log.wait("prepare")
    wait_until(lambda: good in imds.approved, "the approval of the other event")
    imds.events = []
    step_log.wait("recover")
    request.node.user_properties.append(
        ("counts", "vm1 %d/%d; %d of the good event" % (*step_log.counts, imds.approved.count(good)))
    )
    assert step_log.counts == (1, 1) and imds.approved.count(good) == 1
