# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Thousands of events in one document: the work for each is constant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from azure_scheduled_events.document import EventDocument
from hook_runner.lifecycle.engine import Engine
from hook_runner.record_store import RecordStore
from hook_runner.reporting.metrics import Metrics
from hook_runner.reporting.status import summary, to_dict, to_text
from support.daemon.effort import effort
from support.daemon.engine_harness import EngineHarness
from support.daemon.record_factory import add_step, make_event, make_record

FEW, MANY = 100, 1000
# work that grows with the events takes as many times the effort; work that grows with their square
# takes that many times more
AT_MOST = 1.1 * MANY / FEW
# lines of Python for one event of another VM, with some room; "stay" and "tick" come round again
# each second
LINES = {"appear": 450, "stay": 80, "tick": 25, "status": 300, "metrics": 30, "missing": 70, "gone": 350}


def of_others(count: int) -> EventDocument:
    not_before = datetime(2100, 1, 1, tzinfo=UTC)
    return EventDocument(
        1, tuple(make_event(f"E-{number}", resources=("vm2",), not_before=not_before) for number in range(count))
    )


def engine_of(harness: EngineHarness) -> Engine:
    harness.configure(log_level="error", resource_name="vm1")
    return harness.start()


def efforts(harness: EngineHarness, count: int) -> dict[str, int]:
    """The cost of so many events of other VMs, which appear, stay as they are, are reported, and end."""
    engine, document = engine_of(harness), of_others(count)
    metrics = Metrics()

    def shown() -> bytes:
        metrics.update(engine, harness.health)
        return metrics.as_text()

    work: dict[str, Callable[[], Any]] = {
        "appear": lambda: engine.observe(document),
        "stay": lambda: engine.observe(document),
        "tick": engine.tick,
        "status": lambda: (
            to_text(to_dict(engine, harness.health, harness.clock, harness.store)),
            summary(engine, harness.health),
        ),
        "metrics": shown,
        # one document without them may be that of another backend
        "missing": lambda: engine.observe(EventDocument(2, ())),
        "gone": lambda: engine.observe(EventDocument(3, (), sent_at=2.0)),
    }
    return {name: effort(each) for name, each in work.items()}


def test_effort_grows_with_the_events_and_not_with_their_square(make_vm: Callable[..., EngineHarness]) -> None:
    few, many = efforts(make_vm("vm1"), FEW), efforts(make_vm("vm2"), MANY)
    assert [(name, few[name], many[name]) for name in few if many[name] > AT_MOST * few[name]] == []
    assert {name: many[name] for name, lines in LINES.items() if many[name] > lines * MANY} == {}


def test_one_record_of_many_is_written_alone(tmp_path: Path) -> None:
    store = RecordStore(str(tmp_path / "state"), "one", print)
    store.load()
    records = [make_record(store.next_id(), f"E-{number}") for number in range(FEW)]
    for record in records:
        store.save(record)
    assert store.write()
    before = {path: path.stat().st_ino for path in (tmp_path / "state" / "open").iterdir()}
    add_step(records[5], store.next_id())
    store.save(records[5])
    assert store.write()
    changed = [path.name for path, inode in before.items() if path.stat().st_ino != inode]
    assert changed == [f"{records[5].id}.json"]
