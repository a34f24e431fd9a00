# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The event source against the simulator: changes, outages of IMDS, the event loop, loading as a single file."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_source import run
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.imds_watch import ImdsWatch
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.source_options import (
    parse_arguments,
)

from imds_simulator.testing import Simulator
from support.eda.three_hosts import EVENT
from support.maintenance.fleet import LIFE, TRIO
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

FAILURES: list[dict[str, Any]] = [
    {"kind": "status", "status": 429},
    {"kind": "status", "status": 500},
    {"kind": "status", "status": 403},
    {"kind": "empty"},
    {"kind": "reset"},
]
# the queue of a rulebook
Events = asyncio.Queue[dict[str, Any]]


@pytest.fixture
def trio() -> Iterator[Simulator]:
    """Azure with vm1, vm2 and vm3 of one availability set, whose clock only a test moves."""
    with Simulator({"groups": TRIO, "knobs": {"rate_limit": 0}}) as running:
        yield running


class Watched:
    """A watch whose monotonic time moves only by its own pauses."""

    def __init__(self, azure: Simulator, now: Callable[[], datetime] = lambda: datetime.now(UTC), **more: Any) -> None:
        self.now = 1000.0
        options = parse_arguments({"endpoint": azure.endpoints["vm1"], **more})
        self.watch = ImdsWatch(options, clock=lambda: self.now, now=now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def changes(self, number: int) -> list[dict[str, Any]]:
        """Poll so many times; return the changes."""
        changes = []
        for _poll in range(number):
            found, pause = self.watch.poll()
            assert 0 < pause <= 31
            self.now += pause
            changes += found
        return changes

    def polls(self, number: int) -> list[str]:
        """Poll so many times; return the kinds of the changes."""
        return [change["change"] for change in self.changes(number)]


def test_changes_of_an_event_have_the_shared_shape(trio: Simulator) -> None:
    watched = Watched(trio)
    assert watched.polls(2) == []
    trio.post("/events", {**EVENT, "name": "it"})
    (change,) = watched.changes(1)
    assert change["change"] == "appeared" and change["reporter"] == "vm1"
    assert change["event"]["resources"] == EVENT["resources"] and change["event"]["status"] == "Scheduled"


def test_change_has_the_other_events_that_are_not_gone(trio: Simulator) -> None:
    watched = Watched(trio, due_within=60)
    # not due, and therefore without a change of its own
    trio.post("/events", {**EVENT, "name": "it", "resources": ["vm1", "vm2"]})
    watched.changes(1)
    trio.post("/events", {**EVENT, "name": "soon", "notice": "30s"})
    (change,) = watched.changes(1)
    (other,) = change["other_events"]
    assert change["event"]["resources"] == EVENT["resources"] and other["resources"] == ["vm1", "vm2"]
    # one document without the event does not suffice
    trio.post("/events/it/cancel")
    watched.changes(1)
    trio.post("/events", {**EVENT, "name": "third", "notice": "30s"})
    (change,) = watched.changes(1)
    assert len(change["other_events"]) == 2
    watched.changes(3)
    trio.post("/events", {**EVENT, "name": "fourth", "notice": "30s"})
    (change,) = watched.changes(1)
    assert len(change["other_events"]) == 2 and other not in change["other_events"]


def test_event_is_gone_when_documents_lack_it_for_two_seconds(trio: Simulator) -> None:
    watched = Watched(trio)
    trio.post("/events", {**EVENT, "name": "it"})
    assert watched.polls(1) == ["appeared"]
    trio.post("/events/it/cancel")
    assert watched.polls(2) == []
    assert watched.polls(1) == ["gone"]


def test_event_is_reported_when_it_is_due(trio: Simulator) -> None:
    watched = Watched(trio, due_within=600)
    trio.post("/events", {**EVENT, "name": "canceled", "notice": "1h"})
    trio.post("/events", {**EVENT, "name": "moved", "notice": "1h"})
    trio.post("/events", {**EVENT, "name": "started", "starts": "hardware_failure"})
    assert [change["event"]["status"] for change in watched.changes(1)] == ["Started"]
    trio.post("/events/moved/change", {"description": "not yet due"})
    assert watched.polls(1) == []
    trio.post("/events/canceled/cancel")
    trio.advance(51 * 60)
    assert watched.polls(1) == ["appeared"]
    trio.post("/events/moved/change", {"notice": "9h"})
    assert watched.polls(4) == ["changed"]


def test_clock_that_is_set_back_does_not_make_a_change_late(trio: Simulator) -> None:
    """The filter compares these times: a change that the source finds later is observed later."""
    times = (datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in range(12, 0, -1))
    watched = Watched(trio, now=lambda: next(times))
    observed = []
    for name in ("one", "two"):
        trio.post("/events", {**EVENT, "name": name})
        observed += watched.changes(1)
        trio.post(f"/events/{name}/cancel")
        observed += watched.changes(3)
    assert [change["change"] for change in observed] == ["appeared", "gone"] * 2
    assert [change["observed_at"] for change in observed] == sorted({change["observed_at"] for change in observed})


def test_outage_is_logged_once_and_is_never_the_end_of_an_event(
    trio: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    trio.post("/events", EVENT)
    watched = Watched(trio)
    assert watched.polls(1) == ["appeared"]
    for fault in FAILURES:
        caplog.clear()
        trio.post("/faults", {**fault, "route": "scheduledevents"})
        with caplog.at_level(logging.INFO):
            assert watched.polls(6) == []
            trio.delete("/faults")
            assert watched.polls(3) == []
        levels = [record.levelname for record in caplog.records]
        assert levels == ["WARNING", "INFO"], (fault, caplog.text)


def test_update_of_imds_is_logged_only_if_it_takes_long(trio: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(trio)
    trio.post("/faults", {"kind": "status", "status": 410, "route": "scheduledevents"})
    with caplog.at_level(logging.INFO):
        watched.polls(5)
        assert caplog.records == []
        watched.now += 70
        watched.polls(2)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_source_delivers_until_it_is_cancelled(trio: Simulator) -> None:
    async def first_two() -> list[str]:
        queue = Events()
        task = asyncio.create_task(run(queue, {"endpoint": trio.endpoints["vm1"]}))
        await asyncio.to_thread(trio.post, "/events", {**EVENT, "starts": "hardware_failure"})
        events = [await asyncio.wait_for(queue.get(), 120)]
        await asyncio.to_thread(trio.advance, LIFE + 60)
        events.append(await asyncio.wait_for(queue.get(), 120))
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [event["scheduled_event"]["change"] for event in events]

    assert asyncio.run(first_two()) == ["appeared", "gone"]


def test_source_does_not_block_the_event_loop(trio: Simulator) -> None:
    """A request that hangs must not delay other sources, or the end of ansible-rulebook."""
    trio.post("/faults", {"kind": "hang"})

    async def cancel_while_it_hangs() -> None:
        task = asyncio.create_task(run(Events(), {"endpoint": trio.endpoints["vm1"], "resource_name": "vm1"}))
        while not await asyncio.to_thread(waits_for_an_answer):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            # the request itself may take more than two minutes
            await asyncio.wait_for(task, 60)

    def waits_for_an_answer() -> bool:
        return bool(trio.get("/requests")["requests"])

    asyncio.run(cancel_while_it_hangs())


def test_failing_filter_ends_the_source_with_its_error(trio: Simulator) -> None:
    class Refusing(Events):
        async def put(self, item: dict[str, Any]) -> None:
            raise ValueError("host_table: not an object")

    trio.post("/events", EVENT)
    with pytest.raises(ValueError, match="host_table"):
        asyncio.run(asyncio.wait_for(run(Refusing(), {"endpoint": trio.endpoints["vm1"]}), 120))


LOAD = """
import runpy, sys
folder = "extensions/eda/plugins/"
for kind in ("event_source", "event_filter"):
    print(callable(runpy.run_path(sys.argv[1] + "/" + folder + kind + "/scheduled_events.py")["main"]))
"""


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside the package ansible"])
def test_plugins_load_as_single_files(tmp_path: Path, others: bool) -> None:
    root = tmp_path / "collections"
    copy_tree(REPOSITORY, root)
    if others:
        package = tmp_path / "packages" / "ansible_collections" / "azure_imds"
        package.mkdir(parents=True)
        for folder in (package, package.parent):
            (folder / "__init__.py").write_text("")
    ran = subprocess.run(
        [sys.executable, "-c", LOAD, str(root / "ansible_collections/azure_imds/scheduled_events")],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "packages")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.stdout.split() == ["True", "True"], ran.stderr
