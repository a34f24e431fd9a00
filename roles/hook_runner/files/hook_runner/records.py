# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the daemon remembers of an event: the record that the engine changes and the journal keeps."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.named_tuple import NamedTuple

PREPARE = "prepare"
EMERGENCY = "emergency"
STARTED = "started"
RECOVER = "recover"
STAGES = (PREPARE, EMERGENCY, STARTED, RECOVER)

# phases of an event for this VM: a stage of hooks, or one of these
WATCHED = "watched"
CLOSED = "closed"
PHASES = (WATCHED, *STAGES, CLOSED)

# states of a step
RUNNING = "running"
OK = "ok"
FAILED = "failed"  # exit status other than 0, ended by a signal of its own, or could not be started
TIMEOUT = "timeout"  # ended by the daemon, because its time was up
STOPPED = "stopped"  # ended by the daemon, because the event had gone on meanwhile
INTERRUPTED = "interrupted"  # the host or its keeper went away, so that nobody knows how it ended
SKIPPED = "skipped"  # not run, for the reason that stands beside it
STEP_STATES = (RUNNING, OK, FAILED, TIMEOUT, STOPPED, INTERRUPTED, SKIPPED)


class Cause(str, Enum):
    """Why a step has its state; a text, as the journal and a run's result keep it. supervisor.py writes the first four without this class."""

    NOT_STARTED = "not-started"  # the program could not be started
    TIME_LIMIT = "time-limit"  # it took longer than its time-out
    HOST_SHUTDOWN = "host-shutdown"  # the host goes down
    ENDED_EARLY = "ended-early"  # something asked the supervisor to end it
    NONE = ""  # it runs, or it has succeeded
    EXIT = "exit"  # it ended with an exit status other than 0
    SIGNAL = "signal"  # a signal of its own ended it
    REFUSED = "refused"  # others than trusted users could change it
    SUPERVISOR_LOST = "supervisor-lost"  # its supervisor left no result
    JOURNAL_LOST = "journal-lost"  # the journal could not be read when it ended
    NO_TIME = "no-time"  # too little time was left before NotBefore
    DEADLINE = "deadline"  # the event was about to start
    MORE_URGENT = "more-urgent"  # another event needed the time
    EVENT_STARTED = "event-started"
    EVENT_OVER = "event-over"
    GIVEN_UP = "given-up"  # an operator gave up the recovery
    SHARED = "shared"  # one run served several events


# outcomes of an event
COMPLETED = "completed"
CANCELLED_OR_MISSED = "cancelled-or-missed"

# states of the approval of an event
SENT = "sent"  # on its way: written before the request, so that a lost answer leads to another one
ACCEPTED = "accepted"
REFUSED = "refused"  # IMDS refused it, and repeating it unchanged does not help

# how many of the latest runs of a hook keep their output
LATEST_OUTPUTS = 5


class HookRun:
    """One run of one hook for one event.

    Attributes:
        id: number of the run, never used again; names the run's folder.
        stage: one of STAGES.
        hook: file name of the hook.
        attempt: 1 for the first run for this event, and so on; a skipped one does not count.
        state: one of STEP_STATES.
        cause: why it has this state.
        reason: the same as one sentence, where the state needs one.
        started_at, ended_at: aware UTC times, or None.
        exit_status: exit status, minus the signal number where a signal ended it, or None.
        output: the last part of what the hook printed.
        boot: identifies the boot of the host in which it ran; "" where unknown.
        void: why what it did does not hold any more, in one sentence; "" as long as it does. A void
            run is history only: its hook counts as one that has not run.
    """

    __slots__ = (
        "attempt",
        "boot",
        "cause",
        "ended_at",
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
        self.void = ""


class TimelineEntry(NamedTuple):
    """One line of an event's timeline.

    Attributes:
        at: aware UTC time.
        what: one word, such as "appeared", "approval-sent" or "hook-ended".
        detail: one sentence for people, or "".
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
        explanation: why the event is approved, or not approved, at the moment; for `status`.
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
    """All that is known of one life of one event; an id that comes back after its end begins another life.

    Attributes:
        id: number of the record, never used again.
        occurrence: 1 for the first life of this EventId, and so on.
        event: the event as it was seen last.
        first_seen: aware UTC time by the server's clock.
        first_type: event type at the first sight.
        first_status: status at the first sight.
        affects_this_vm: whether it ever concerned this VM.
        seen_started: whether it was ever seen Started.
        gone_at: when a good document came without it, or when it ceased to concern this VM; None
            before that.
        outcome: COMPLETED or CANCELLED_OR_MISSED once it is gone, else "".
        approval: "", SENT, ACCEPTED or REFUSED.
        approval_reason: why it was approved: the sentence of the policy, or who asked for it.
        approval_attempts: how many requests were sent.
        approval_asked_by: who asked for an approval by hand; "" where nobody did.
        approval_error: how the last request for the approval failed; "" where it did not.
        approval_forced: whether they want it even though the preparation failed or goes on.
        closed_at: when everything that it needed had been done; None before that.
        steps: every run of a hook, in the order of their beginning.
        timeline: entries in the order in which they came. The journal writes those that it does not
            have yet.
        absences: how many good documents in a row have not listed the event, or not this VM among
            its Resources. Not stored.
        resources_unknown: whether the last document did not give Resources in a readable form, so
            that `event` has the ones from before. Not stored.
        came_back_at: when the event was listed again after it had been gone; None where it never
            was. Not stored.
        on_hold: whether the policy holds the event, so that nothing is prepared for it. Not stored.
        attempt: the present attempt to approve the event. Not stored.
        waiting_for: why the event's next hook does not begin, for `status`; "" where none waits.
            Not stored.
    """

    __slots__ = (
        "absences",
        "affects_this_vm",
        "approval",
        "approval_asked_by",
        "approval_attempts",
        "approval_error",
        "approval_forced",
        "approval_reason",
        "attempt",
        "came_back_at",
        "closed_at",
        "event",
        "first_seen",
        "first_status",
        "first_type",
        "gone_at",
        "id",
        "occurrence",
        "on_hold",
        "outcome",
        "resources_unknown",
        "seen_started",
        "steps",
        "timeline",
        "waiting_for",
    )

    def __init__(self, id: int, life: int, event: ScheduledEvent, first_seen: datetime) -> None:
        self.id = id
        self.occurrence = life
        self.event = event
        self.first_seen = first_seen
        self.first_type = event.event_type
        self.first_status = event.status
        self.affects_this_vm = False
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
        self.absences = 0
        self.resources_unknown = False
        self.came_back_at: datetime | None = None
        self.on_hold = False
        self.attempt = ApprovalAttempt()
        self.waiting_for = ""

    @property
    def key(self) -> str:
        """The identity of the event: its id with letter case folded."""
        return self.event.key

    @property
    def phase(self) -> str:
        """What the event is for this VM now: WATCHED, the stage whose hooks run or are next, or CLOSED."""
        if self.gone_at is not None or self.closed_at is not None:
            return RECOVER if self.closed_at is None else CLOSED
        if not self.affects_this_vm:
            return WATCHED
        if self.seen_started:
            return EMERGENCY if self.first_status == "Started" else STARTED
        return PREPARE

    def runs_in_stage(self, stage: str) -> list[HookRun]:
        """The runs of one stage whose effect holds."""
        return [step for step in self.steps if step.stage == stage and not step.void]

    def latest_run(self, stage: str, hook: str) -> HookRun | None:
        """The last run of one hook in one stage whose effect holds, or None."""
        return next(
            (step for step in reversed(self.steps) if (step.stage, step.hook) == (stage, hook) and not step.void), None
        )

    def forget_outputs(self, stage: str, hook: str) -> None:
        """Keep the output of a hook's first run and of its latest ones: one that fails for weeks would fill memory and disk."""
        with_output = [step for step in self.steps if (step.stage, step.hook) == (stage, hook) and step.output]
        for step in with_output[1:-LATEST_OUTPUTS]:
            step.output = ""
