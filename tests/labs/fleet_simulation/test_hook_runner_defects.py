# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The simulation finds defects: each test breaks one function of the hook runner, and expects a violation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from azure_scheduled_events import tracking
from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError
from fleet_simulation.fleet import Fleet
from fleet_simulation.plan import Plan
from hook_runner.lifecycle import engine, leader, stage_plan, stage_runner
from hook_runner.lifecycle.approvals import Approver
from hook_runner.lifecycle.engine import Engine
from hook_runner.lifecycle.stage_runner import StageRunner
from hook_runner.record_store import RecordStore
from hook_runner.records import EventRecord
from hook_runner.service.poller import Poller

# runs of a plan until a defect counts as not found
SEEDS = (3, 1, 2, 4)


class Defect(NamedTuple):
    """One function, what replaces it, the invariants of which one must be broken, and values of the plan."""

    owner: Any
    name: str
    replacement: Any
    invariants: tuple[str, ...]
    plan: Mapping[str, Any] = MappingProxyType({})


def _failed_poll_counts_as_a_document(self: Engine) -> None:
    self.observe(EventDocument(None, ()))


def _forgets_the_answer(self: Approver, record: EventRecord, error: ImdsError | None) -> None:
    record.attempt.in_flight = False


DEFECTS = {
    "a preparation that has not ended counts as done": Defect(
        engine, "stage_state", lambda hooks, record, stage: "ok", ("approval after preparation",)
    ),
    "documents without the event need not span the time": Defect(
        tracking, "GONE_AFTER", 0.0, ("recovery after the end",)
    ),
    "an error counts as a document without events": Defect(
        Engine, "poll_failed", _failed_poll_counts_as_a_document, ("recovery after the end",)
    ),
    "each VM leads": Defect(leader, "blocked_by", lambda *arguments: None, ("approval by the leader",)),
    "recovery does not wait for other events": Defect(
        stage_runner, "blocking_event", lambda *arguments: None, ("recovery waits for others",)
    ),
    "a reboot does not undo a preparation": Defect(
        StageRunner,
        "void_after_reboot",
        lambda self, record: None,
        ("approval after preparation", "approval after all have prepared"),
    ),
    "a recover hook that failed is not repeated": Defect(
        stage_plan,
        "retry_at",
        lambda hook, step: None if step is None else stage_plan.NEVER,
        ("recovered in time", "idle at the end"),
    ),
    "a start does not read the open records": Defect(
        RecordStore,
        "open_records",
        lambda self: [],
        ("prepare once", "recovered in time", "recover once", "recovery waits for others"),
    ),
    "an approval is sent for an event that has changed": Defect(
        Poller,
        "_is_unchanged",
        lambda self, event: True,
        ("approval after preparation", "approval by the leader", "approval of a scheduled event"),
        {"changes_at_approval": 0.6},
    ),
    "an accepted approval is forgotten": Defect(Approver, "answer_received", _forgets_the_answer, ("approval once",)),
}


# those that the first seed shows within seconds
QUICK = (
    "a preparation that has not ended counts as done",
    "documents without the event need not span the time",
    "each VM leads",
    "an approval is sent for an event that has changed",
    "recovery does not wait for other events",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.all) for name in DEFECTS]
)
def test_simulation_finds_the_defect(disks: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    defect = DEFECTS[name]
    monkeypatch.setattr(defect.owner, defect.name, defect.replacement)
    found: set[str] = set()
    for seed in SEEDS:
        plan = {"vms": 25, "events": 60, "faults": 1.0, **defect.plan}
        fleet = Fleet(Plan(seed, **plan), disks / str(seed))
        found |= {violation.invariant for violation in fleet.run(stops_at_violation=True)}
        if found.intersection(defect.invariants):
            return
    pytest.fail(f"no violation of {' or '.join(defect.invariants)}; found: {', '.join(sorted(found)) or 'none'}")
