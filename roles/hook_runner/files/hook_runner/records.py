# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Records of events and hook runs: the engine changes them, the store keeps them."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.tracking import Sighting
from azure_scheduled_events.urgency import counts_for

PREPARE = "prepare"
EMERGENCY = "emergency"
STARTED = "started"
RECOVER = "recover"
STAGES = (PREPARE, EMERGENCY, STARTED, RECOVER)

# phases of an event for this VM: a stage of hooks, or one of these
WATCHED = "watched"
CLOSED = "closed"
PHASES = (WATCHED, *STAGES, CLOSED)

# states of a hook run
RUNNING = "running"
OK = "ok"
FAILED = "failed"  # exit status other than 0, ended by a signal of its own, or could not be started
TIMEOUT = "timeout"  # ended by the daemon at its time limit
STOPPED = "stopped"  # ended by the daemon, because the event had moved on
INTERRUPTED = "interrupted"  # the host went down, or another program stopped the unit; the result is unknown
SKIPPED = "skipped"  # not run, for the reason in `HookRun.reason`
STEP_STATES = (RUNNING, OK, FAILED, TIMEOUT, STOPPED, INTERRUPTED, SKIPPED)


class Cause(str, Enum):
    """Why a run has its state, as its record stores it."""

    NOT_STARTED = "not-started"  # the program could not be started
    TIME_LIMIT = "time-limit"  # it took longer than its timeout
    HOST_SHUTDOWN = "host-shutdown"  # the host shuts down
    UNIT_STOPPED = "unit-stopped"  # another program than the daemon stopped its unit
    STARTING = "starting"  # the daemon is starting it; without a unit in the same boot, it has not begun
    NONE = ""  # it runs, or it has succeeded
    EXIT = "exit"  # it ended with an exit status other than 0
    SIGNAL = "signal"  # a signal ended it that the daemon had not sent
    REFUSED = "refused"  # users who are not trusted could change the program
    NO_TIME = "no-time"  # too little time was left before NotBefore
    DEADLINE = "deadline"  # the event was about to start
    MORE_URGENT = "more-urgent"  # a more urgent event needed the time
    EVENT_STARTED = "event-started"
    EVENT_OVER = "event-over"
    GIVEN_UP = "given-up"  # an operator gave up the recovery
    SHARED = "shared"  # one run served several events


# states of the approval of an event
SENT = "sent"  # written before the request; after a lost answer the daemon sends another one
ACCEPTED = "accepted"
REFUSED = "refused"  # IMDS refused it, and repeating it unchanged does not help

# the latest runs of a hook that keep their output
LATEST_OUTPUTS = 5


class HookRun:
    """One run of one hook for one event.

    Attributes:
        id: unique number of the run; a part of the name of its unit.
        stage: one of STAGES.
        hook: file name of the hook.
        attempt: 1 for the first run for this event, and so on; skipped runs do not count.
        state: one of STEP_STATES.
        cause: why it has this state.
        reason: the cause as one sentence, where the state needs one.
        started_at, ended_at: aware UTC times, or None.
        exit_status: exit status, or minus the signal number, or None.
        output: the last part of the hook's output.
        boot: identifies the boot of the host in which it ran; "" where unknown.
        event_type: type of its event when it began.
        void: why its effect no longer holds, in one sentence; "" while it does. A void run is
            history only: its hook counts as not run.
    """

    __slots__ = (
        "attempt",
        "boot",
        "cause",
        "ended_at",
        "event_type",
        "exit_status",
        "hook",
        "id",
        "output",
        "reason",
        "stage",
        "started_at",
        "state",
        "void",
    )

    def __init__(self, id: int, stage: str, hook: str, attempt: int, state: str, started_at: datetime | None) -> None:
        self.id = id
        self.stage = stage
        self.hook = hook
        self.attempt = attempt
        self.state = state
        self.cause = Cause.NONE
        self.reason = ""
        self.started_at = started_at
        self.ended_at: datetime | None = None
        self.exit_status: int | None = None
        self.output = ""
        self.boot = ""
        self.event_type = ""
        self.void = ""


class TimelineEntry(NamedTuple):
    """One line of an event's timeline.

    Attributes:
        at: aware UTC time.
        what: a keyword, such as "appeared", "approval-sent" or "hook-ended".
        detail: one sentence, or "".
    """

    at: datetime
    what: str
    detail: str


class ApprovalAttempt:
    """The daemon's present attempt to approve one event. Not stored: a new daemon begins a new attempt.

    Attributes:
        in_flight: whether a request was handed to the poller and its answer is outstanding.
        not_before: monotonic seconds before which no further request is sent.
        failures: consecutive requests that failed.
        outcome_unknown: whether the last request failed, so that its effect is unknown until the
            next document (docs/reference/scheduled-events.md 1.5).
        explanation: why the event is approved, or not approved, now; for `status`.
        logged_decision: the decision of the policy that was logged last, to log each one once.
    """

    __slots__ = ("explanation", "failures", "in_flight", "logged_decision", "not_before", "outcome_unknown")

    def __init__(self) -> None:
        self.in_flight = False
        self.not_before = 0.0
        self.failures = 0
        self.outcome_unknown = False
        self.explanation = ""
        self.logged_decision: tuple[object, ...] | None = None

    def forget_failures(self) -> None:
        """Let the next request be the first one."""
        self.not_before, self.failures, self.outcome_unknown = 0.0, 0, False


class EventRecord:
    """One occurrence of one event. An EventId that is listed again long after its end is another occurrence.

    Attributes:
        id: unique number of the record.
        occurrence: 1 for the first occurrence of this EventId, and so on.
        event: the event as IMDS listed it last.
        first_seen: aware UTC time by the server's clock.
        first_type: event type in the first document with it.
        first_status: status in the first document with it.
        affects_this_vm: whether it ever affected this VM.
        is_of_lost_records: whether it stands for events whose records are lost: see `RecordStore.add_lost`.
        seen_started: whether it was ever listed as Started.
        gone_at: when it was over, because documents no longer listed it or this VM among its
            Resources; None before that.
        outcome: one of the helper's OUTCOMES once it is over, else "".
        approval: "", SENT, ACCEPTED or REFUSED.
        approval_reason: why it was approved: the sentence of the policy, or the operator's name.
        approval_attempts: requests that were sent.
        approval_asked_by: the operator who requested a manual approval; "" without one.
        approval_error: how the last request for the approval failed; "" where it did not.
        approval_forced: whether the operator approves it even if the preparation failed or is not
            done.
        closed_at: when the daemon had finished with it; None before that.
        steps: every hook run, in the order of their start.
        timeline: entries in order.
        is_missing: whether the last document lacks the event, or this VM in it; it may be over. Not stored.
        sighting: the event as the tracker knows it; not listed before the first document. Not stored.
        on_hold: whether the policy holds the event; nothing is prepared for it. Not stored.
        attempt: the present attempt to approve the event. Not stored.
        waiting_for: why the event's next hook does not begin, for `status`; "" where none waits.
            Not stored.
    """

    __slots__ = (
        "affects_this_vm",
        "approval",
        "approval_asked_by",
        "approval_attempts",
        "approval_error",
        "approval_forced",
        "approval_reason",
        "attempt",
        "closed_at",
        "event",
        "first_seen",
        "first_status",
        "first_type",
        "gone_at",
        "id",
        "is_missing",
        "is_of_lost_records",
        "occurrence",
        "on_hold",
        "outcome",
        "seen_started",
        "sighting",
        "steps",
        "timeline",
        "waiting_for",
    )

    def __init__(self, id: int, occurrence: int, event: ScheduledEvent, first_seen: datetime) -> None:
        self.id = id
        self.occurrence = occurrence
        self.event = event
        self.first_seen = first_seen
        self.first_type = event.event_type
        self.first_status = event.status
        self.affects_this_vm = False
        self.is_of_lost_records = False
        self.seen_started = event.status == "Started"
        self.gone_at: datetime | None = None
        self.outcome = ""
        self.approval = ""
        self.approval_reason = ""
        self.approval_attempts = 0
        self.approval_asked_by = ""
        self.approval_forced = False
        self.approval_error = ""
        self.closed_at: datetime | None = None
        self.steps: list[HookRun] = []
        self.timeline: list[TimelineEntry] = []
        self.is_missing = False
        self.sighting = Sighting(event, False, frozenset(), bool(event.resources))
        self.on_hold = False
        self.attempt = ApprovalAttempt()
        self.waiting_for = ""

    @property
    def key(self) -> str:
        """The event's identity: its EventId with letter case folded."""
        return self.event.key

    @property
    def phase(self) -> str:
        """The state of the event for this VM: WATCHED, the stage whose hooks run or are next, or CLOSED.

        1. An event that is over is in RECOVER until its record is closed.
        2. An event that never affected this VM is WATCHED.
        3. An event that has started is in EMERGENCY if the first document with it had it as Started, else in
           STARTED.
        4. Any other event is in PREPARE.
        """
        if self.gone_at is not None or self.closed_at is not None:
            return RECOVER if self.closed_at is None else CLOSED
        if not self.affects_this_vm:
            return WATCHED
        if self.seen_started:
            return EMERGENCY if self.first_status == "Started" else STARTED
        return PREPARE

    @property
    def leaving(self) -> tuple[str, ...]:
        """The VMs of the event that the last document does not name, and that are not gone."""
        if not self.sighting.listed or not self.sighting.readable:
            return ()
        return tuple(name for name in self.event.resources if vm_key(name) not in self.sighting.named)

    def runs_in_stage(self, stage: str) -> list[HookRun]:
        """Return the runs of one stage whose effect holds."""
        return [step for step in self.steps if step.stage == stage and not step.void]

    def latest_run(self, stage: str, hook: str) -> HookRun | None:
        """Return the last run of one hook in one stage whose effect holds, or None.

        A prepare hook that began for a less severe type of the event has not had its run, unless it failed.
        """
        runs = (step for step in reversed(self.steps) if (step.stage, step.hook) == (stage, hook) and not step.void)
        return next((step for step in runs if self._counts(step)), None)

    def _counts(self, step: HookRun) -> bool:
        if step.stage != PREPARE or step.state not in (OK, RUNNING):
            return True
        return counts_for(step.event_type, self.event.event_type)

    def forget_outputs(self, stage: str, hook: str) -> None:
        """Drop the outputs of a hook's runs except the first and the latest.

        A recover hook that fails for weeks would fill memory and disk otherwise.
        """
        with_output = [step for step in self.steps if (step.stage, step.hook) == (stage, hook) and step.output]
        for step in with_output[1:-LATEST_OUTPUTS]:
            step.output = ""
