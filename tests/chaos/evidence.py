# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What happened in a chaos run, from outside of what is tested: marks of steps, the simulator's log, ends of processes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from chaos.plan import JOIN, RECOVER, SETTLE, Plan
from chaos.vm import Mark

# the name of a run on another controller that may not replace the notes of the first one
ELSEWHERE = "run-elsewhere"
OVER = ("finished", "cancelled", "expired")
FOREVER = float("inf")


class Deed(NamedTuple):
    """What was done to the run, at a Unix time."""

    at: float
    text: str


class Approval(NamedTuple):
    """A request to approve that IMDS took, from a VM."""

    at: float
    vm: str
    event_id: str


class AzureEvent(NamedTuple):
    """The life of an event; times that did not come are None.

    Attributes:
        hits: (from when on, whom).
        started: Started, approved or not.
        over: finished or cancelled.
    """

    event_id: str
    kind: str
    hits: tuple[tuple[float, tuple[str, ...]], ...]
    not_before: float
    started: float | None = None
    over: float | None = None

    def resources_at(self, at: float) -> tuple[str, ...]:
        """Whom it hit by then; () before it came and after it was over."""
        if self.over is not None and self.over <= at:
            return ()
        return next((resources for since, resources in reversed(self.hits) if since <= at), ())


class Run(NamedTuple):
    """One process of ansible-playbook.

    Attributes:
        is_disturbed: by what the plan does, or by what it had left.
        killed: how it was killed; empty when it ended by itself.
        hung: whether it was killed because it did not end.
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

    @property
    def report(self) -> list[dict[str, Any]] | None:
        """What it says itself of hosts and events, a row for each; None where it has printed no report."""
        found = re.search(r"^\tRUN: (\{.*\})$", self.output, re.MULTILINE)
        return json.loads(found[1]).get("maintenance_report") if found else None


class Evidence(NamedTuple):
    """All of a seed; what the runs report is judged by the rest, and is evidence of nothing."""

    plan: Plan
    runs: Sequence[Run]
    marks: Sequence[Mark]
    events: Sequence[AzureEvent]
    approvals: Sequence[Approval]
    deeds: Sequence[Deed]

    def events_of(self, vm: str, at: float) -> list[AzureEvent]:
        """What is announced for a VM or under way there at a time."""
        return [event for event in self.events if vm in event.resources_at(at)]

    def did(self, vm: str, step: str, run: Run) -> bool:
        """Whether the step was ok on a VM in a run."""
        return any((mark.vm, mark.step, mark.what) == (vm, step, "ok") and mark.run == run.name for mark in self.marks)

    def held_by(self, run: Run, vm: str, at: float) -> bool:
        """Whether a run had taken a step on a VM by then, and neither it nor another one had yet brought the VM back."""
        before = [mark for mark in self.marks if mark.vm == vm and mark.at < at]
        steps = [number for number, mark in enumerate(before) if mark.run == run.name]
        return bool(steps) and not any((mark.step, mark.what) == (JOIN, "ok") for mark in before[steps[-1] :])

    def preparation(self, vm: str, at: float) -> str:
        """How far a VM was prepared by then: `prepared`, or what it was instead, in words."""
        before = [mark for mark in self.marks if mark.vm == vm and mark.at <= at]
        last = next((mark for mark in reversed(before) if mark.what != "begin"), None)
        begun = before[-1] if before else None
        if begun is None or (begun.step, begun.what) == (JOIN, "ok"):
            return "not prepared"
        if begun.step in RECOVER:
            return "being recovered"
        if (begun.step, begun.what) == (SETTLE, "ok"):
            return "prepared"
        if last is not None and last.what == "failed" and last is begun:
            return f"not prepared: step {begun.step} failed"
        return f"not prepared: step {begun.step} {'had not ended' if begun.what == 'begin' else 'was the last one'}"

    def timeline(self) -> list[str]:
        """All of it in the order of time, a line each, for people."""
        lines = [(mark.at, "        {} {} {} ({})".format(*mark[1:])) for mark in self.marks]
        lines += [(deed.at, f"  * {deed.text}") for deed in self.deeds]
        for event in self.events:
            name = event.event_id[:8]
            lines += [(at, f"    azure: {name} {event.kind} of {','.join(hit)}") for at, hit in event.hits]
            lines += [
                (at, f"    azure: {name} {what}")
                for at, what in ((event.started, "started"), (event.over, "over"))
                if at is not None
            ]
        lines += [
            (approval.at, f"    azure: {approval.event_id[:8]} approved by {approval.vm}")
            for approval in self.approvals
        ]
        for run in self.runs:
            lines.append((run.began, f"{run.name} begins"))
            end = (
                "hangs, and is killed"
                if run.hung
                else ("killed: %s, %d" if run.killed else "ends%s with %d") % (run.killed, run.status)
            )
            state = "drained: {}; down: {}".format(
                " ".join(sorted(run.drained)) or "none",
                " ".join(sorted(run.down)) or "none",
            )
            lines.append((run.ended, f"{run.name} {end} ({state})"))
        return [f"{datetime.fromtimestamp(at, UTC).strftime('%H:%M:%S.%f')[:-3]} {text}" for at, text in sorted(lines)]


def events_from(lines: Sequence[dict[str, Any]]) -> list[AzureEvent]:
    """The lives of events, from the simulator's log."""
    found: dict[str, AzureEvent] = {}
    for line in lines:
        event_id = str(line.get("id", "")).casefold()
        if not event_id or "resources" not in line:
            continue
        at, resources = unix(line["time"]), tuple(line["resources"])
        event = found.get(event_id) or AzureEvent(event_id, line["type"], (), FOREVER)
        if line["what"] in OVER:
            event = event._replace(over=at)
        elif not event.hits or event.hits[-1][1] != resources:
            event = event._replace(hits=(*event.hits, (at, resources)))
        if line["what"] == "started":
            event = event._replace(started=at)
        if line.get("not_before"):
            event = event._replace(not_before=unix(line["not_before"]))
        found[event_id] = event
    return list(found.values())


def approvals_from(lines: Sequence[dict[str, Any]]) -> list[Approval]:
    return [
        Approval(unix(line["time"]), line["vm"], event_id.casefold())
        for line in lines
        if line["what"] == "approval" and line["status"] == 200
        for event_id in line["ids"]
    ]


def unix(text: str) -> float:
    """Unix time of a line of the simulator's log."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
