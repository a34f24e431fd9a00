# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the daemon knows and writes to the disk: the open maintenance, and the state beside it.

The state machine changes these values; the store writes them after each tick that asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.outcome import outcome_of
from azure_scheduled_events.timestamps import as_utc_text
from azure_scheduled_events.urgency import most_severe
from hook_runner.records import OPEN_STATES, STARTING, Cause

# the number of the event of a run that has none: the events of the maintenance are unknown
NO_EVENT = 0


class Pause(NamedTuple):
    """A pause by an operator: no prepare hook begins, and no rule approves.

    Attributes:
        since: aware UTC time at which it began.
        until: aware UTC time at which it ends by itself, or None.
        by: the operator.
        reason: why, or "".
    """

    since: datetime
    until: datetime | None
    by: str
    reason: str

    def __str__(self) -> str:
        until = f"until {as_utc_text(self.until)}" if self.until else "until it is resumed"
        return f"the daemon is paused by {self.by} {until}{': ' + self.reason if self.reason else ''}"


class ApprovalRequest(NamedTuple):
    """An operator's request to approve an event.

    Attributes:
        who: the operator.
        force: approve although this VM is not prepared, or although a value of the event is unknown.
        release_others: approve although the event affects other VMs, too.
        vms: the VMs of the event at that time, each as `vm_key`; the request is void when another one joins.
        event_type: type of the event at that time; the request is void when it changes.
    """

    who: str
    force: bool = False
    release_others: bool = False
    vms: frozenset[str] = frozenset()
    event_type: str = ""

    def holds_for(self, event: ScheduledEvent) -> bool:
        """Return True if the event is still the one that the operator meant."""
        return event.event_type == self.event_type and self.vms.issuperset(map(vm_key, event.resources))


class Entry(NamedTuple):
    """One line of a timeline.

    Attributes:
        at: aware UTC time.
        what: a keyword, such as "appeared", "hook-ended" or "approval-sent".
        event_id: the event that it concerns, or "".
        detail: one sentence, or "".
    """

    at: datetime
    what: str
    event_id: str
    detail: str


@dataclass
class HookRun:
    """One run of one hook, for one event, which is its input.

    Attributes:
        number: unique over all maintenances; the name of the unit ends with it.
        event: number of its event, or NO_EVENT.
        event_type: type of this event when the run began.
        attempt: 1 for the first run of the hook for this event, and so on; of a recover hook in this recovery.
        limit: when systemd ends the run.
        is_cut_short: whether the limit is the deadline of the event, and not the timeout of the hook.
        boot: identifies the boot of the host.
        ending: why the daemon is ending it; Cause.NONE while it need not end.
        may_be_ended: whether a process that could not write this may have been ending it.
    """

    number: int
    stage: str
    name: str
    event: int
    event_type: str
    attempt: int
    began: datetime
    limit: datetime
    is_cut_short: bool
    boot: str
    state: str = STARTING
    ending: Cause = Cause.NONE
    may_be_ended: bool = False
    ended: datetime | None = None
    cause: Cause = Cause.NONE
    reason: str = ""
    exit_status: int | None = None
    output: str = ""

    @property
    def title(self) -> str:
        """The hook, such as "prepare/10-drain"."""
        return f"{self.stage}/{self.name}"

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in OPEN_STATES

    @property
    def seconds(self) -> float:
        """The seconds that it may take."""
        return (self.limit - self.began).total_seconds()


@dataclass
class EventRecord:
    """One occurrence of an event. What comes back after it was gone is another occurrence.

    Attributes:
        event: as the tracker knows it.
        number: unique number of an event of a maintenance; NO_EVENT for an event that is only observed.
        first_seen: aware UTC time by the server's clock.
        first_type: in the first document with it.
        first_status: the same, or in the first document after this VM joined it.
        taken_up_at: when it became an event of a maintenance; its hooks could not run before.
        stage_at_start: STARTED or EMERGENCY once it has started as an event of a maintenance, else "".
        prepared: the state of its preparation: "none", "running", "ok" or "failed".
        gone_at: when it, or this VM in it, was gone; None before that.
        requested: an operator's request to approve it.
        approval: "", SENT, ACCEPTED or REFUSED.
        approval_by: the operator, or the rule, that approved it.
        approval_error: how the last request for the approval failed; "" where it did not.
    """

    event: ScheduledEvent
    first_seen: datetime
    first_type: str
    first_status: str
    number: int = NO_EVENT
    taken_up_at: datetime | None = None
    stage_at_start: str = ""
    prepared: str = "none"
    gone_at: datetime | None = None
    requested: ApprovalRequest | None = None
    approval: str = ""
    approval_by: str = ""
    approval_error: str = ""

    @property
    def key(self) -> str:
        """The identity of the event."""
        return self.event.key

    @property
    def is_started(self) -> bool:
        """Whether it is Started; the tracker keeps that."""
        return self.event.status == "Started"

    @property
    def outcome(self) -> str:
        """The outcome of the event if it is over, else ""."""
        return "" if self.gone_at is None else outcome_of(self.is_started)


@dataclass
class Maintenance:
    """The time in which the host is prepared for events, passes them and recovers.

    Attributes:
        number: unique over all maintenances and runs.
        events: each event for which hooks ran or could run, in the order in which they were taken up.
        may_lack_events: whether the disk was full, or the record damaged: a process has to read which events there are
            before the host recovers, and recover hooks for any type run.
        retried_after: the last number when an operator asked for another attempt of the recover hooks that failed.
        given_up_by: the operator who ended the recovery; "" without one.
    """

    number: int
    began: datetime
    events: list[EventRecord] = field(default_factory=list)
    runs: list[HookRun] = field(default_factory=list)
    timeline: list[Entry] = field(default_factory=list)
    may_lack_events: bool = False
    retried_after: int = 0
    given_up_by: str = ""
    ended: datetime | None = None

    @property
    def present(self) -> list[EventRecord]:
        """The events that are not gone."""
        return [record for record in self.events if record.gone_at is None]

    def event(self, number: int) -> EventRecord | None:
        """Return the event with this number, or None."""
        return next((record for record in self.events if record.number == number), None)

    def run(self, number: int) -> HookRun | None:
        """Return the run with this number, or None."""
        return next((run for run in self.runs if run.number == number), None)

    @property
    def open_run(self) -> HookRun | None:
        """The run that has not ended, the first one of several that the record lacked."""
        return next((run for run in self.runs if run.is_open), None)

    @property
    def last_number(self) -> int:
        """The highest number of the maintenance, its events and its runs."""
        events, runs = (each.number for each in self.events), (each.number for each in self.runs)
        return max(self.number, *events, *runs, 0)

    @property
    def outcome(self) -> str:
        """The outcome of the most severe event."""
        record = most_severe(self.events, lambda each: each.event.event_type)
        return outcome_of(False) if record is None else record.outcome


class Vm(NamedTuple):
    """The VM whose records these are: its resource name, its vmId and its boot, as they were last; "" if unknown."""

    name: str = ""
    vm_id: str = ""
    boot: str = ""

    def is_of(self, boot: str) -> bool:
        """Return True if the records were last written in this boot of the host; False if it is unknown."""
        return bool(boot) and self.boot == boot

    def is_other(self, name: str, vm_id: str, boot: str) -> bool:
        """Return True if the VM with this name and vmId is another one, which has a copy of the disk.

        vmIds decide if both are known. Otherwise the names do, in any letter case, unless the boot is the same.
        """
        if self.vm_id and vm_id:
            return self.vm_id.casefold() != vm_id.casefold()
        return bool(self.name) and not self.is_of(boot) and self.name.casefold() != name.casefold()


@dataclass
class State:
    """What is kept beside the open maintenance.

    Attributes:
        pause: the pause that is in force, or None.
        observed: events that are no events of the maintenance: of other VMs, held by the policy, or advice; by key.
        past: such events that are gone; those of the last days.
        vm: the VM whose records these are.
        returned, gone: the memory of the tracker: keys of the events that had come back, and of those that are gone.
    """

    pause: Pause | None = None
    observed: dict[str, EventRecord] = field(default_factory=dict)
    past: list[EventRecord] = field(default_factory=list)
    vm: Vm = field(default_factory=Vm)
    returned: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
