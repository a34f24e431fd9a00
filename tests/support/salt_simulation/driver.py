# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Drives the engine's reducer: a test moves the clock, sets the answers and reads the actions."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from azure_events_engine.messages import (
    Action,
    Announce,
    Hint,
    Input,
    Known,
    PublishJob,
    Reply,
    Request,
    Returned,
    Save,
    Tick,
)
from azure_events_engine.reducer import reduce, restored
from azure_events_engine.settings import Settings
from azure_events_engine.state import State
from azure_events_engine.store import as_dict, from_dict
from azure_scheduled_events.tracking import GONE_AFTER

EVENT = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
# wall clock at the monotonic time 0
BEGAN_AT = datetime(2026, 11, 22, 10, tzinfo=timezone.utc).timestamp()
Answer = dict[str, Any]


def event(
    *resources: str, event_id: str = EVENT, status: str = "Scheduled", kind: str = "Reboot", **more: Any
) -> Answer:
    """Return an event as a minion lists it."""
    listed = {
        "event_id": event_id,
        "event_type": kind,
        "status": status,
        "resources": list(resources),
        "readable": True,
        "not_before": "2026-11-22T12:00:00Z",
    }
    return {**listed, "selected": True, "not_selected_because": "", **more}


def record(event_id: str = EVENT, state: str = "prepared", this_boot: bool = True, kind: str = "Reboot") -> Answer:
    return {
        "event_id": event_id,
        "state": state,
        "this_boot": this_boot,
        "why_not": "",
        "resources": [],
        "event_type": kind,
    }


def status(name: str | None, *events: Answer, records: list[Answer] | None = None, **more: Any) -> Answer:
    """Return the answer of a minion to a poll."""
    whole = {"version": 1, "resource_name": name, "available": True, "reason": "", "complete": True, "incarnation": 1}
    return {**whole, "events": list(events), "records": records or [], "working": None, **more}


def done(outcome: str, reason: str = "", event_id: str = EVENT, kind: str = "Reboot") -> Answer:
    """Return the answer of a minion to a job about an event of this type."""
    return {"version": 1, "event_id": event_id, "outcome": outcome, "reason": reason, "event": {"event_type": kind}}


class Driver:
    def __init__(self, *minions: str, **settings: Any) -> None:
        self.state = State(Settings(**settings))
        self.now = 1000.0
        self.asked: list[PublishJob] = []
        self.announced: list[Announce] = []
        self.replies: list[Reply] = []
        self.disk_is_full = False
        self.minions = minions
        self._disk: dict[str, str] = {}
        self.give(Known(frozenset(minions)))

    def give(self, given: Input) -> list[Action]:
        """Apply one input, and write what the actions save, unless the disk is full."""
        self.state, actions = reduce(self.state, given, self.now)
        for action in actions:
            if isinstance(action, PublishJob):
                self.asked.append(action)
            elif isinstance(action, Announce):
                self.announced.append(action)
            elif isinstance(action, Reply):
                self.replies.append(action)
            elif isinstance(action, Save):
                self._write(action)
        return actions

    def restart(self) -> None:
        """Start with the minions, and with what is on the disk."""
        written = {key: from_dict(json.loads(text), self.now) for key, text in self._disk.items()}
        self.state = restored(State(self.state.settings), written, {})
        self.give(Known(frozenset(self.minions)))

    def _tick(self) -> None:
        self.state = self.state._replace(unwritten="database or disk is full" if self.disk_is_full else "")
        self.give(Tick(BEGAN_AT + self.now))

    def _write(self, action: Save) -> None:
        if not self.disk_is_full:
            self._disk.pop(action.key, None)
            if action.maintenance is not None:
                self._disk[action.key] = json.dumps(as_dict(action.maintenance))

    def wait(self, seconds: float, step: float = 0.5) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + step)
            self._tick()

    def hint(self, *minions: str) -> None:
        for minion in minions:
            self.give(Hint(minion))
        self.wait(3.0)

    def hint_only(self, minion: str) -> None:
        self.give(Hint(minion))

    def give_return(self, job: int, minion: str, answer: Any) -> None:
        self.give(Returned(job, minion, answer))
        self._tick()

    def pending(self, function: str) -> list[PublishJob]:
        return [ask for ask in self.asked if ask.function == function]

    def count(self, function: str, minion: str | None = None) -> int:
        return sum(1 for ask in self.asked if ask.function == function and (minion is None or minion in ask.minions))

    def answer(self, function: str, answers: dict[str, Any]) -> None:
        """Have each of these minions answer its last such job, at one moment."""
        for minion, answer in answers.items():
            ask = [ask for ask in self.asked if ask.function == function and minion in ask.minions][-1]
            self.give(Returned(ask.job, minion, answer))
        self._tick()

    def poll(self, answers: dict[str, Any]) -> None:
        """Have each of these minions send a hint, be polled, and answer."""
        self.hint(*answers)
        self.answer("status", answers)

    def see_over(self, *minions: str) -> None:
        """Have these prepared minions answer until their IMDS has not listed the event for GONE_AFTER."""
        over = {minion: status(minion, records=[record()]) for minion in minions}
        self.poll(over)
        self.wait(GONE_AFTER)
        self.poll(over)

    def prepare(
        self, *minions: str, outcome: str = "prepared", reason: str = "", event_id: str = EVENT, kind: str = "Reboot"
    ) -> None:
        self.answer("prepare", {minion: done(outcome, reason, event_id, kind) for minion in minions})

    def request(self, do: str, event_id: str = EVENT, **more: Any) -> dict[str, Any]:
        self.give(Request("r", do, event_id, "alice", "2026-11-22T10:00:00Z", **more))
        reply = dict(self.replies[-1].data)
        self._tick()
        return reply

    @property
    def steps(self) -> list[str]:
        return [one.step for one in self.announced]

    @property
    def reason(self) -> str:
        """Return the announced reason why the last approval was withheld."""
        held = [one.data["reason"] for one in self.announced if one.step == "held"]
        return str(held[-1]) if held else ""


def listing(*minions: str) -> Driver:
    """Return a fleet whose minions list one event of their VMs."""
    fleet = Driver(*minions)
    fleet.poll({minion: status(minion, event(*minions)) for minion in minions})
    return fleet


def prepared(*minions: str) -> Driver:
    """Return a fleet whose minions list one event, and are prepared for it."""
    fleet = listing(*minions)
    fleet.prepare(*minions)
    return fleet
