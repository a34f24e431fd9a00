# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The content of a scenario as immutable values. Durations are simulated seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..faults.fault import Fault
from ..faults.kinds import FAULT
from ..keys import Found, Path, from_path, key, list_of, mapping_of, nested, scalar
from ..times import Moment, When, parse_duration
from ..value_types import (
    DURATION,
    EVENT_TYPE,
    HOLD,
    JSON_OBJECT,
    MAX_NUMBER,
    NAME,
    NAMES,
    TEXT,
    WHEN,
    integer,
    number,
    one_of,
    text,
)
from .answers import Answer
from .groups import Group
from .knobs import KNOBS, Knobs
from .notify import Notify

BY_NOTICE = "by_notice"
HARDWARE_FAILURE = "hardware_failure"
AUTOMATIC_APPROVAL = "automatic_approval"


def _not_before(value: Any) -> str:
    # a number as text may be meant as a date
    is_number = isinstance(value, str) and value[-1:].isdigit()
    try:
        parse_duration("" if is_number else value)
    except ValueError:
        if isinstance(value, str):
            return value
        raise ValueError from None
    raise ValueError(f"{value!r} is a duration, but not_before is the text that NotBefore shows; write notice: {value}")


_SOURCE = one_of("Platform", "User")
_SECONDS = integer(-1, what="whole seconds, or -1 for unknown")
# IMDS shows ids in upper case (docs/reference/scheduled-events.md 1.4.3)
_EVENT_ID = text("an event id: a GUID", "[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", str.upper, "GUID")
_NOT_BEFORE = scalar("text", _not_before, {"type": "string"}, "TEXT")
_COMMAND = list_of(TEXT, least=1, what="a command as a list: program and arguments")


@dataclass(frozen=True)
class Change:
    """A change of an event, due simulated seconds after its appearance or its start. None: a member stays as it is."""

    after: float | None = key(DURATION, "time since the event appeared", default=None)
    after_start: float | None = key(DURATION, "time since the event started", default=None)
    action: str = key(
        one_of("edit", "cancel", "complete", "approve", "release", "impact"),
        "approve: by the control plane; release: by the other tenants; impact: a further short interruption "
        "(reference 2.1 case 4)",
        default="edit",
    )
    type: str | None = key(EVENT_TYPE, "the new EventType", default=None)
    resources: tuple[str, ...] | None = key(NAMES, "the new VMs", default=None)
    source: str | None = key(_SOURCE, "the new EventSource", default=None)
    description: str | None = key(TEXT, "the new Description", default=None)
    duration: int | None = key(_SECONDS, "the new DurationInSeconds", default=None)
    notice: float | None = key(DURATION, "the new time to NotBefore", default=None)
    status: str | None = key(one_of("Scheduled", "Started"), "the new EventStatus", default=None)
    impact_for: float = key(DURATION, "the length of an interruption of the VMs", default=0.0)

    @property
    def delay(self) -> float:
        """Seconds since the event appeared, or since it started if ``after_start`` is given."""
        return (self.after if self.after_start is None else self.after_start) or 0.0

    def check(self) -> Found:
        """Yield the problems of an action and its members."""
        if self.after is not None and self.after_start is not None:
            yield ("after_start",), "give either after or after_start, not both"
        members = ("description", "duration", "notice", "resources", "source", "status", "type")
        edits = [name for name in members if getattr(self, name) is not None]
        if self.action == "edit" and not edits:
            yield (), "the change is empty; give an action or a member to change"
        if self.action == "impact" and not self.impact_for:
            yield (), "the key impact_for is missing; an impact needs a duration"
        if self.action not in ("edit", "impact") and edits:
            yield (edits[0],), f"action {self.action} does not take {', '.join(edits)}"


@dataclass(frozen=True)
class EventPlan:
    """One event of a scenario (reference 2.1); None: the knobs or the type decide."""

    name: str = key(
        NAME,
        "its name in after, in the control API and in the log",
        default="",
        at=lambda path: f"event{int(path[-1]) + 1}",
    )
    type: str | None = key(EVENT_TYPE, "the EventType", default=None)
    resources: tuple[str, ...] = key(NAMES, "the affected VMs, all of one group", default=(), required=True)
    at: When = key(
        WHEN, "when it appears: a time, or a duration since the begin or since the end of after", default=0.0
    )
    after: str | None = key(TEXT, "the event that must end before this one appears", default=None)
    starts: str = key(
        one_of(BY_NOTICE, HARDWARE_FAILURE, AUTOMATIC_APPROVAL),
        "whether it has a notice, or is Started when it appears",
        default=BY_NOTICE,
    )
    id: str | None = key(_EVENT_ID, "the EventId", default=None)
    source: str | None = key(_SOURCE, "the EventSource", default=None)
    description: str | None = key(TEXT, "the Description", default=None)
    duration: int | None = key(_SECONDS, "DurationInSeconds: seconds, or -1 for unknown", default=None)
    notice: float | None = key(DURATION, "time from appearance to NotBefore", default=None)
    started_for: float | None = key(DURATION, "time from Started to removal", default=None)
    hold: float | None = key(
        HOLD,
        "how long other tenants hold an approved event, counted from its appearance; true: until released or NotBefore",
        default=None,
    )
    batch: str | None = key(
        NAME,
        "events of one batch start together: an approved one waits for the others until its NotBefore",
        default=None,
    )
    cancel_after: float | None = key(DURATION, "time from appearance to its cancellation", default=None)
    approve_after: float | None = key(
        DURATION, "time from appearance to an approval of the control plane", default=None
    )
    actual: str | None = key(EVENT_TYPE, "the real type of the interruption", default=None)
    impact_for: float | None = key(DURATION, "the length of the interruption", default=None)
    not_before: str | None = key(_NOT_BEFORE, "the text that NotBefore shows", default=None)
    extra: Mapping[str, Any] = key(JSON_OBJECT, "further members of the event", default=MappingProxyType({}))
    changes: tuple[Change, ...] = key(list_of(nested(Change)), "changes of the event", default=())
    place: Path = from_path(lambda path: path, (), compare=False)

    @property
    def all_changes(self) -> tuple[Change, ...]:
        """The changes, with those that are keys of their own."""
        due = (("cancel", self.cancel_after), ("approve", self.approve_after))
        return (*self.changes, *(Change(after, action=action) for action, after in due if after is not None))

    def check(self) -> Found:
        """Yield the problems of keys that depend on others."""
        if self.type is None and self.starts != HARDWARE_FAILURE:
            yield (), "the key type is missing; only an event with starts: hardware_failure needs no type"
        if self.after is not None and isinstance(self.at, Moment):
            text = f"{self.at} is an absolute time; with after write a duration since the end of that event"
            yield ("at",), text


@dataclass(frozen=True)
class IncarnationStep:
    """A change of a group's DocumentIncarnation without a change of its events (reference 2.5)."""

    at: When = key(WHEN, "when: a time, or a duration since the begin", default=0.0)
    group: str = key(TEXT, "the group", default="", required=True)
    to: int | None = key(integer(0), "the new value", default=None)
    add: int = key(integer(-MAX_NUMBER), "a number to add", default=0)
    place: Path = from_path(lambda path: path, (), compare=False)

    def check(self) -> Found:
        """Yield a problem unless there is one change."""
        if (self.to is not None) == (self.add != 0):
            yield (), "give either to, or an add other than 0"


@dataclass(frozen=True)
class Commands:
    """The commands of one type of events, as program and arguments."""

    start: tuple[str, ...] | None = key(_COMMAND, "when the interruption begins", default=None)
    end: tuple[str, ...] | None = key(_COMMAND, "when the interruption ends", default=None)


@dataclass(frozen=True)
class ImpactCommands:
    """Commands to run for each affected VM; ``timeout`` is in real seconds."""

    timeout: float = key(DURATION, "the time after which a command is ended (real time)", default=60.0)
    freeze: Commands | None = key(nested(Commands), "commands of a Freeze", default=None, name="Freeze")
    reboot: Commands | None = key(nested(Commands), "commands of a Reboot", default=None, name="Reboot")
    redeploy: Commands | None = key(nested(Commands), "commands of a Redeploy", default=None, name="Redeploy")
    preempt: Commands | None = key(nested(Commands), "commands of a Preempt", default=None, name="Preempt")
    terminate: Commands | None = key(nested(Commands), "commands of a Terminate", default=None, name="Terminate")

    def command(self, kind: str, phase: str) -> tuple[str, ...] | None:
        """Return the command of an event type for ``phase``, which is "start" or "end"."""
        argv: tuple[str, ...] | None = getattr(getattr(self, kind.lower(), None), phase, None)
        return argv


@dataclass(frozen=True)
class Scenario:
    """A whole scenario file; ``begin``: simulated time 0 is the "start" or the "first_request"."""

    title: str = key(TEXT, "a name", default="")
    speed: float = key(
        # the longest duration stays a finite number of seconds
        number("a finite number of at least 0.000001", lambda value: value >= 1e-6, {"minimum": 1e-6}),
        "simulated seconds per second",
        default=1.0,
    )
    begin: str = key(
        one_of("start", "first_request"),
        "simulated time 0: the start, or the first valid GET of the document by any VM",
        default="start",
    )
    default_vm: str | None = key(TEXT, "the VM of clients with an unknown source address", default=None)
    knobs: Knobs = key(KNOBS, "behaviour that Azure does not document", default=Knobs())
    groups: tuple[Group, ...] = key(mapping_of(Group), "the groups by name", default=(), required=True)
    events: tuple[EventPlan, ...] = key(list_of(nested(EventPlan)), "the events", default=())
    incarnations: tuple[IncarnationStep, ...] = key(
        list_of(nested(IncarnationStep)), "changes of DocumentIncarnation", default=()
    )
    faults: tuple[Fault, ...] = key(list_of(FAULT), "the faults", default=())
    answers: tuple[Answer, ...] = key(list_of(nested(Answer)), "answers of routes that the simulator lacks", default=())
    impact: ImpactCommands = key(nested(ImpactCommands), "commands for the interruptions", default=ImpactCommands())
    notify: Notify | None = key(nested(Notify), "notifications of Event Grid", default=None)
