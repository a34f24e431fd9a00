# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A model of Azure and of minions in virtual time, by the contract between minions and engine."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from azure_scheduled_events.timestamps import as_utc_text
from support.salt_simulation.driver import done, event, record, status

Answer = dict[str, Any]


@dataclass(eq=False)
class Event:
    """One event.

    Attributes:
        lag: seconds after its announcement until documents may list it.
        gone_at: when it ended or was cancelled.
        approvals: by minions that are not compromised.
    """

    event_id: str
    event_type: str
    vms: tuple[str, ...]
    announced_at: float
    not_before: float
    lasts: float
    lag: float = 0.0
    started_at: float | None = None
    gone_at: float = math.inf
    approvals: int = 0

    def is_listed(self, now: float) -> bool:
        return self.announced_at <= now and not (self.started_at is not None and now >= self.started_at + self.lasts)

    @property
    def is_waiting(self) -> bool:
        """Whether it can still start."""
        return self.started_at is None and self.gone_at == math.inf

    @property
    def status(self) -> str:
        return "Scheduled" if self.started_at is None else "Started"


class Azure:
    """All events, and the minion of each VM. On some polls a document is late by `longest_lag` seconds."""

    def __init__(self, chance: random.Random, longest_lag: float) -> None:
        self.lasting: dict[str, Event] = {}
        self.minions: dict[str, Minion] = {}
        self._chance, self._longest_lag = chance, longest_lag
        self._of_vm: dict[str, list[Event]] = {}

    def add(self, event: Event) -> None:
        event.lag = self._chance.choice((0.0, 0.0, 0.5, 1.0)) * self._longest_lag
        self.lasting[event.event_id] = event
        for vm in event.vms:
            self._of_vm.setdefault(vm, []).append(event)

    def forget(self, event: Event) -> None:
        self.lasting.pop(event.event_id, None)
        for vm in event.vms:
            self._of_vm[vm].remove(event)

    def of(self, vm: str, now: float) -> list[Event]:
        """Return the events of one document, which may be late."""
        moment = now - (self._longest_lag if self._chance.random() < 0.2 else 0.0)
        return [
            event
            for event in self._of_vm.get(vm, ())
            if event.announced_at <= max(moment, now - event.lag) < event.gone_at
        ]


class Minion:
    """A minion that keeps the contract.

    Attributes:
        unknown: share of the polls at which IMDS does not answer.
        sessions: times from the first preparation on, each of which ends with a recovery.
        recoveries: recoveries that ran.
    """

    is_honest = True

    def __init__(self, name: str, vm: str, azure: Azure, chance: random.Random, unknown: float) -> None:
        self.name = name
        self.vm = vm
        self.azure = azure
        self.chance = chance
        self.unknown = unknown
        self.records: dict[str, str] = {}
        self.old_boot: set[str] = set()
        self.working = ""
        self.working_until = 0.0
        self.down_until = 0.0
        self.sessions = 0
        self.recoveries = 0
        self.approved: set[str] = set()

    def reboot(self, now: float, seconds: float) -> None:
        self.down_until = now + seconds
        self.working = ""
        self.old_boot |= {event_id for event_id, state in self.records.items() if state == "prepared"}
        self.records = {
            event_id: "prepare_failed" if state == "preparing" else state for event_id, state in self.records.items()
        }

    def is_busy(self, now: float) -> bool:
        return self.working != "" and now < self.working_until

    def status(self, now: float) -> Answer:
        events = [self.shown(event) for event in self.azure.of(self.vm, now)]
        records = []
        for event_id, state in self.records.items():
            kind = self.azure.lasting[event_id].event_type if event_id in self.azure.lasting else ""
            kept = record(event_id, state, this_boot=event_id not in self.old_boot, kind=kind)
            records.append({**kept, "resources": [self.vm]})
        working = self.working if self.is_busy(now) else None
        found = status(self.vm, *events, records=records, working=working)
        if self.chance.random() < self.unknown:
            found.update(available=False, complete=False, events=[], reason="no answer within 10 s")
        return found

    def shown(self, shown: Event) -> Answer:
        not_before = as_utc_text(datetime.fromtimestamp(shown.not_before, UTC))
        return event(
            *shown.vms, event_id=shown.event_id, status=shown.status, kind=shown.event_type, not_before=not_before
        )

    def begin_prepare(self, event_id: str, now: float) -> tuple[float, Answer | None]:
        """Return the seconds until the return, and the return if no step has to run."""
        event = self.azure.lasting.get(event_id)
        if event is None or not event.is_listed(now) or self.vm not in event.vms:
            return 0.0, self.done(event_id, "not_listed")
        if event.status == "Started":
            return 0.0, self.done(event_id, "started")
        if self.is_busy(now):
            return 0.0, self.done(event_id, "busy")
        if self.records.get(event_id) == "prepared" and event_id not in self.old_boot:
            return 0.0, self.done(event_id, "already_prepared")
        self.working, self.working_until = event_id, now + self.chance.uniform(0.2, 20.0)
        self.sessions += not self.records
        self.records[event_id] = "preparing"
        return self.working_until - now, None

    def end_prepare(self, event_id: str, now: float) -> Answer:
        self.working = ""
        if self.chance.random() < 0.02:
            self.records[event_id] = "prepare_failed"
            return self.done(event_id, "failed")
        self.records[event_id] = "prepared"
        self.old_boot.discard(event_id)
        return self.done(event_id, "prepared")

    def recover(self, event_id: str, now: float) -> Answer:
        """Recover if each of two documents lists no event that has a record."""
        if event_id not in self.records:
            return self.done(event_id, "not_prepared")
        if self.is_busy(now):
            return self.done(event_id, "busy")
        if any(event.event_id in self.records for _document in range(2) for event in self.azure.of(self.vm, now)):
            return self.done(event_id, "still_listed")
        if self.chance.random() < 0.02:
            self.records[event_id] = "recover_failed"
            return self.done(event_id, "failed")
        self.records.clear()
        self.old_boot.clear()
        self.recoveries += 1
        return self.done(event_id, "recovered")

    def approve_prepared(self, event_id: str, resources: list[str], now: float) -> Answer:
        event = self.azure.lasting.get(event_id)
        if event is None or not event.is_listed(now) or self.vm not in event.vms:
            return self.done(event_id, "not_listed")
        if event.status == "Started":
            return self.done(event_id, "started")
        if event_id in self.approved:
            return self.done(event_id, "already_approved")
        if self.records.get(event_id) != "prepared" or event_id in self.old_boot:
            return self.done(event_id, "not_prepared")
        if not set(event.vms) <= set(resources):
            return self.done(event_id, "others_affected")
        self.approved.add(event_id)
        event.approvals += 1
        return self.done(event_id, "approved")

    def done(self, event_id: str, outcome: str) -> Answer:
        listed = self.azure.lasting.get(event_id)
        return {**done(outcome, event_id=event_id), "event": None if listed is None else self.shown(listed)}


class HostileMinion(Minion):
    """A minion that answers to its own advantage, or invalidly; ``victims``: VMs that it claims."""

    is_honest = False
    victims: list[str]

    def status(self, now: float) -> Answer:
        kind = self.chance.randrange(8)
        if kind == 0:
            odd: list[Any] = [
                [],
                None,
                "text",
                {"version": 2},
                {"version": 1, "events": {}},
                7,
                {"version": 1, "events": [{"event_id": None}]},
            ]
            wrong: Answer = self.chance.choice(odd)
            return wrong
        found = super().status(now)
        others = list(self.azure.lasting.values())
        victim = self.chance.choice(self.victims)
        if kind == 1:
            found["resource_name"] = victim
            found["events"] = [dict(self.shown(event), status="Started") for event in others if victim in event.vms]
        elif kind == 2:
            # lists the events of all others as its own
            found["events"] = [dict(self.shown(event), resources=[*event.vms, self.vm]) for event in others[:20]]
        elif kind == 3:
            found["events"] = [dict(self.shown(event), resources=[self.vm]) for event in others[:20]]
        elif kind == 4:
            found["resource_name"] = victim
            found["events"] = [dict(self.shown(event), resources=[victim]) for event in others[:20]]
            found["records"] = [record(event.event_id) for event in others[:20]]
        elif kind == 5:
            forged = Event(f"forged-{self.chance.randrange(10**6)}", "Preempt", (self.vm, victim), now, now + 30, 1)
            found["events"] = [self.shown(forged)]
        elif kind == 6:
            found["events"] = [
                dict(self.shown(event), status=self.chance.choice(["Scheduled", "Started", 3])) for event in others[:3]
            ]
        return found

    def begin_prepare(self, event_id: str, now: float) -> tuple[float, Answer | None]:
        return 0.0, self.done(event_id, self.chance.choice(["prepared", "already_prepared", "failed", "nonsense"]))

    def recover(self, event_id: str, now: float) -> Answer:
        return self.done(event_id, self.chance.choice(["recovered", "failed", "still_listed"]))

    def approve_prepared(self, event_id: str, resources: list[str], now: float) -> Answer:
        return self.done(event_id, self.chance.choice(["approved", "failed", "already_approved"]))
