# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The simulation finds defects: each test breaks one function of the hook runner, and expects a violation.

Defects of the state machine alone are the variants of `maintenance_world`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from azure_scheduled_events import tracking
from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError
from fleet_simulation.fleet import Fleet
from fleet_simulation.plan import Plan
from hook_runner.maintenance import leader
from hook_runner.maintenance.approvals import Approvals
from hook_runner.maintenance.hook_plan import HookPlan
from hook_runner.maintenance.record import EventRecord
from hook_runner.runner import Runner
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


def _failed_poll_counts_as_a_document(self: Runner) -> None:
    now = self._clock.monotonic()
    self.observe(EventDocument(None, (), sent_at=now, sent_by=now))


def _forgets_the_answer(self: Approvals, record: EventRecord, error: ImdsError | None, now: datetime) -> None:
    self._in_flight = ""


DEFECTS = {
    "a preparation that has not ended counts as done": Defect(
        HookPlan, "prepared", lambda self, record: "ok", ("approval after preparation",)
    ),
    "documents without the event need not span the time": Defect(
        tracking, "GONE_AFTER", 0.0, ("recovery after the end",)
    ),
    "an error counts as a document without events": Defect(
        Runner, "poll_failed", _failed_poll_counts_as_a_document, ("recovery after the end",)
    ),
    "each VM leads": Defect(leader, "blocked_by", lambda *arguments: None, ("approval by the leader",)),
    "an approval is sent for an event that has changed": Defect(
        Poller,
        "_is_unchanged",
        lambda self, event: True,
        ("approval after preparation", "approval by the leader", "approval of a scheduled event"),
        {"changes_at_approval": 0.6},
    ),
    "an accepted approval is forgotten": Defect(Approvals, "answered", _forgets_the_answer, ("approval once",)),
}


# those that the first seed shows within seconds
QUICK = (
    "a preparation that has not ended counts as done",
    "documents without the event need not span the time",
    "each VM leads",
    "an approval is sent for an event that has changed",
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
