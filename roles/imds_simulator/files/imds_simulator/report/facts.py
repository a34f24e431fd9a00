# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The facts of a run in their order: who did what, when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from .run import Answer, Line, Run

ANNOUNCED = "announced"
CHANGED = "changed"
SEEN = "seen"
PREPARED = "prepared"
APPROVED = "approved"
STARTED = "started"
INTERRUPTED = "interrupted"
RESUMED = "resumed"
ENDED = "ended"
RECOVERED = "recovered"
NOTE = "note"
REFUSED = "refused"
ERRORS = "errors"

# steps of the service in the log -> kind and text
_SERVICE = {
    "scheduled": (ANNOUNCED, "announced"),
    "changed": (CHANGED, "changed"),
    "released": (CHANGED, "released by the other tenants"),
    "started": (STARTED, "started"),
    "impact-start": (INTERRUPTED, "interruption began"),
    "impact-end": (RESUMED, "interruption ended"),
    "finished": (ENDED, "ended"),
    "cancelled": (ENDED, "cancelled"),
}
_NOTES = {"prepared": PREPARED, "recovered": RECOVERED}
# the longest text of a fact that the report keeps
_MAX_TEXT = 300


class Fact(NamedTuple):
    """One step. ``vm``: the VM that took it, else empty; ``event``: the name of an event, or empty.

    ``vms`` are those that an interruption affects.
    """

    moment: float
    kind: str
    vm: str
    event: str
    text: str
    vms: tuple[str, ...] = ()


def facts_of(run: Run) -> list[Fact]:
    """Return the facts of ``run``, in the order of time."""
    found = [fact for line in run.lines for fact in _of_line(line)]
    found += _errors(run.answers)
    return sorted(found, key=lambda fact: fact.moment)


def _of_line(line: Line) -> Iterator[Fact]:
    fields, what = line.fields, line.what
    event, vm = _text(fields.get("event")), _text(fields.get("vm"))
    if what in _SERVICE:
        kind, text = _SERVICE[what]
        detail = fields.get("why") if what == "started" else None
        if what == "impact-start":
            detail = fields.get("type")
        resources = fields.get("resources")
        vms = tuple(map(_text, resources)) if isinstance(resources, (list, tuple)) else ()
        yield Fact(line.moment, kind, "", event, f"{text} ({_text(detail)})" if detail else text, vms)
    elif what == "seen":
        yield Fact(line.moment, SEEN, vm, event, "first received the event")
    elif what == "approved":
        yield Fact(line.moment, APPROVED, _text(fields.get("by")), event, f"approved by {_text(fields.get('by'))}")
    elif what == "note":
        text = _text(fields.get("note"))
        yield Fact(line.moment, _NOTES.get(text, NOTE), vm, event, text)
    elif what == "approval-refused" or (what == "approval" and fields.get("status") != 200):
        yield Fact(line.moment, REFUSED, vm, "", f"approval refused with {_text(fields.get('status'))}")


def is_error(answer: Answer) -> bool:
    """Return True for an answer that is an error, or that a fault damaged."""
    return answer.status == 0 or answer.status >= 400 or bool(answer.fault)


def _errors(answers: Iterable[Answer]) -> Iterator[Fact]:
    """Yield one fact for each run of equal errors of a VM."""
    of_vm: dict[str, list[Answer]] = {}
    for each in answers:
        of_vm.setdefault(each.vm, []).append(each)
    for vm, of_this in of_vm.items():
        for (status, fault), equal in groupby(of_this, lambda each: (each.status, each.fault)):
            same = list(equal)
            if is_error(same[0]):
                yield Fact(same[0].moment, ERRORS, vm, "", _error_text(status, fault, same))


def _error_text(status: int, fault: str, same: Sequence[Answer]) -> str:
    number = "1 answer" if len(same) == 1 else f"{len(same)} answers"
    outcome = f"with status {status}" if status else "lost or incomplete"
    return f"{number} {outcome}{f' (fault {_text(fault)})' if fault else ''}"


def _text(value: object) -> str:
    return "" if value is None else str(value)[:_MAX_TEXT]
