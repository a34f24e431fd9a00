# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Observations of a chaos run that do not come from the playbook: marks, the simulator's log, exit statuses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from chaos.plan import JOIN, RECOVER, SETTLE
from chaos.vm import Mark

OVER = ("finished", "cancelled", "expired")
FOREVER = float("inf")


class Approval(NamedTuple):
    """An approval that IMDS accepted from a VM."""

    at: float
    vm: str
    event_id: str


class AzureEvent(NamedTuple):
    """The history of an event; the time of a step that did not happen is None.

    Attributes:
        affected: pairs of a time and the VMs that the event affects from then on.
        started: time of the status Started.
        over: time at which it was finished or cancelled.
    """

    event_id: str
    kind: str
    affected: tuple[tuple[float, tuple[str, ...]], ...]
    not_before: float
    started: float | None = None
    over: float | None = None

    def resources_at(self, at: float) -> tuple[str, ...]:
        """Return the VMs that it affects at a time; () before it appears and after it is over."""
        if self.over is not None and self.over <= at:
            return ()
        return next((resources for since, resources in reversed(self.affected) if since <= at), ())


class Run(NamedTuple):
    """One process of ansible-playbook.

    Attributes:
        is_disturbed: whether the plan, or remains of an earlier disturbance, disturb it.
        killed: how it was killed; empty when it ended by itself.
        hung: whether it was killed because it did not end in time.
        down: VMs that could not be reached at its end.
        drained: VMs that were drained at its end, by their own state.
    """

    name: str
    is_disturbed: bool
    began: float
    ended: float
    status: int
    killed: str
    hung: bool
    down: frozenset[str]
    drained: frozenset[str]
    output: str


class Evidence(NamedTuple):
    """All observations of a seed.

    ``performed``: what else happened, with Unix times, for the timeline.
    """

    runs: Sequence[Run]
    marks: Sequence[Mark]
    events: Sequence[AzureEvent]
    approvals: Sequence[Approval]
    performed: Sequence[tuple[float, str]]

    def events_of(self, vm: str, at: float) -> list[AzureEvent]:
        """Return the events that are Scheduled or Started for a VM at a time."""
        return [event for event in self.events if vm in event.resources_at(at)]

    def held_by(self, run: Run, vm: str, at: float) -> bool:
        """Return True if a run had taken a step on a VM before a time, and no run had recovered the VM since."""
        before = [mark for mark in self.marks if mark.vm == vm and mark.at < at]
        steps = [number for number, mark in enumerate(before) if mark.run == run.name]
        return bool(steps) and not any((mark.step, mark.what) == (JOIN, "ok") for mark in before[steps[-1] :])

    def preparation(self, vm: str, at: float) -> str:
        """Return the state of a VM's preparation at a time: `prepared`, or a text that describes another state."""
        before = [mark for mark in self.marks if mark.vm == vm and mark.at <= at]
        if not before or (before[-1].step, before[-1].what) == (JOIN, "ok"):
            return "not prepared"
        begun = before[-1]
        if begun.step in RECOVER:
            return "being recovered"
        if (begun.step, begun.what) == (SETTLE, "ok"):
            return "prepared"
        if begun.what == "failed":
            return f"not prepared: step {begun.step} failed"
        return f"not prepared: step {begun.step} {'had not ended' if begun.what == 'begin' else 'was the last one'}"

    def timeline(self) -> list[str]:
        lines = [(mark.at, "        {} {} {} ({})".format(*mark[1:])) for mark in self.marks]
        lines += [(at, f"  * {text}") for at, text in self.performed]
        for event in self.events:
            name = f"    azure: {event.event_id[:8]}"
            lines += [(at, f"{name} {event.kind} of {','.join(hit)}") for at, hit in event.affected]
            lines += [(event.started, f"{name} started")] if event.started is not None else []
            lines += [(event.over, f"{name} over")] if event.over is not None else []
        lines += [(each.at, f"    azure: {each.event_id[:8]} approved by {each.vm}") for each in self.approvals]
        for run in self.runs:
            how = "hangs" if run.hung else run.killed or "by itself"
            state = f"drained: {sorted(run.drained)}, down: {sorted(run.down)}"
            lines += [(run.began, f"{run.name} begins"), (run.ended, f"{run.name} ends ({how}, {run.status}; {state})")]
        return [f"{clock_time(at)} {text}" for at, text in sorted(lines)]


def events_from(lines: Sequence[dict[str, Any]]) -> list[AzureEvent]:
    """Return the history of each event from the simulator's log."""
    found: dict[str, AzureEvent] = {}
    for line in lines:
        event_id = str(line.get("id", "")).casefold()
        if not event_id or "resources" not in line:
            continue
        at, resources = unix_time(line["time"]), tuple(line["resources"])
        event = found.get(event_id) or AzureEvent(event_id, line["type"], (), FOREVER)
        if line["what"] in OVER:
            event = event._replace(over=at)
        elif not event.affected or event.affected[-1][1] != resources:
            event = event._replace(affected=(*event.affected, (at, resources)))
        if line["what"] == "started":
            event = event._replace(started=at)
        if line.get("not_before"):
            event = event._replace(not_before=unix_time(line["not_before"]))
        found[event_id] = event
    return list(found.values())


def approvals_from(lines: Sequence[dict[str, Any]]) -> list[Approval]:
    """Return the approvals in the simulator's log."""
    return [
        Approval(unix_time(line["time"]), line["vm"], event_id.casefold())
        for line in lines
        if line["what"] == "approval" and line["status"] == 200
        for event_id in line["ids"]
    ]


def unix_time(text: str) -> float:
    """Convert a time of the simulator's log to Unix time."""
    return datetime.fromisoformat(text).timestamp()


def clock_time(at: float) -> str:
    """Return the time of day of a Unix time, in UTC with milliseconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
