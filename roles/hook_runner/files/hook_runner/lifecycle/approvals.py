# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When an event is approved, and that it is not lost: by the policy, by a person, once."""

from __future__ import annotations

from typing import Callable

from azure_scheduled_events.approval_rules import (
    ALREADY_APPROVED,
    NOT_PREPARED,
    PREPARATION_FAILED,
    blocked_by_scope,
    blocked_by_state,
)
from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.errors import ImdsError, OwnNameUnknown
from azure_scheduled_events.named_tuple import NamedTuple
from azure_scheduled_events.policy import NEVER, Decision
from hook_runner.clock import ServerClock
from hook_runner.config.settings import Settings
from hook_runner.gates import open_gates
from hook_runner.lifecycle import leader
from hook_runner.lifecycle.pause import Pausing
from hook_runner.permissions import trusted_owners
from hook_runner.records import ACCEPTED, REFUSED, SENT, EventRecord

# what the policy judges by: when one of these changes, an earlier word of a person does not hold
# any more
EVALUATED_FIELDS = ("event_type", "resources", "resource_type", "source", "duration")

_LONGEST_PAUSE = 10.0
# seconds after a refusal: the first one may be about something that has passed, and where time is
# short every chance counts
_PAUSE_AFTER_FIRST_REFUSAL = 1.0
_PAUSE_AFTER_REFUSAL = 30.0
_PAUSE_IN_SHORT_TIME = 5.0
_SHORT_TIME = 120.0


class ManualApprovalAnswer(NamedTuple):
    """What became of a person's wish to approve.

    Attributes:
        accepted: whether the event is, or will be, approved.
        text: one sentence.
    """

    accepted: bool
    text: str


class Approver:
    """Decides, for one record after the other, whether an approval is to be sent now.

    Args:
        settings: as configured; replace the attribute to change them.
        clock: the server's clock.
        send: hands (record, event) to whoever talks to IMDS; the answer comes back by `answered`.
        durable: whether the journal can keep what is decided; nothing is approved that would be
            forgotten.
        keep: notes (record, word, sentence, level) in the timeline and saves the record.
        pausing: knows whether an operator has paused the daemon.
    """

    def __init__(
        self,
        settings: Settings,
        clock: ServerClock,
        send: Callable[[EventRecord, ScheduledEvent], None],
        durable: Callable[[], bool],
        keep: Callable[[EventRecord, str, str, str], bool],
        pausing: Pausing,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._send = send
        self._durable = durable
        self._keep = keep
        self._pausing = pausing
        self._in_flight: set[int] = set()
        self._not_before: dict[int, float] = {}
        self._errors_in_a_row: dict[int, int] = {}
        # those whose last request went wrong: nobody knows what became of it until the events are
        # looked at again (docs/reference/scheduled-events.md 1.5)
        self._outcome_unknown: set[int] = set()
        # whether the last look at the events brought nothing, so that they may not be any more what
        # was judged
        self._last_poll_failed = False
        self.explanations: dict[int, str] = {}

    def document_received(self) -> None:
        """A good document came, so that what is known of the events is what Azure knows."""
        self._outcome_unknown.clear()
        self._last_poll_failed = False

    def poll_failed(self) -> None:
        """A look at the events brought nothing: nothing is approved on what was true before."""
        self._last_poll_failed = True

    def awaits_observation(self) -> bool:
        """Return True if a request is kept back until the events have been read once more."""
        return self._last_poll_failed or bool(self._outcome_unknown)

    def decide(self, record: EventRecord, own_name: str | None, prepared: str) -> Decision:
        """What the policy says about the event at this moment."""
        context = PolicyContext(
            now=self._clock.now(),
            own_name=own_name,
            api_version=self.settings.api_version[0],
            first_seen=record.first_seen,
            seen_started=record.seen_started,
            approved_by_us=record.approval == ACCEPTED,
            previous_type=record.first_type if record.first_type != record.event.event_type else None,
            prepared=prepared,
            gates=open_gates(self.settings.gates, trusted_owners()),
        )
        try:
            return self.settings.policy.decide(record.event, context)
        except OwnNameUnknown as error:
            return Decision(NEVER, False, ("hold",), None, str(error))

    def send_if_due(self, record: EventRecord, decision: Decision, own_name: str | None, prepared: str) -> None:
        """Send an approval if it is due, permitted, and not on its way already."""
        if record.approval == ACCEPTED:
            self.explanations[record.id] = "approved, and waits for Azure to start it: " + record.approval_reason
            return
        due, reason = self._requested(record, decision, prepared)
        obstacle = self._blocked_by(record, own_name) if due else None
        self.explanations[record.id] = "; but not now: ".join(filter(None, (reason, obstacle)))
        if (
            not due
            or obstacle is not None
            or record.id in self._in_flight
            or self._clock.monotonic() < self._not_before.get(record.id, 0.0)
        ):
            return
        if self.settings.dry_run:
            if not record.approval_reason:
                record.approval_reason = reason
                self._keep(record, "dry-run", "it would be approved now: " + reason, "notice")
            return
        record.approval, record.approval_reason = SENT, reason
        record.approval_attempts += 1
        if self._keep(record, "approval-sent", reason, "notice") or record.approval_forced:
            self._in_flight.add(record.id)
            self._send(record, record.event)

    def request_withheld(self, record: EventRecord) -> None:
        """The request was not sent, because the event was not any more what it had been when it was judged."""
        self._in_flight.discard(record.id)
        record.approval = ""
        self._keep(
            record, "approval-held", "the event changed before the request was sent, and is judged anew", "notice"
        )

    def answer_received(self, record: EventRecord, error: ImdsError | None) -> None:
        """IMDS took the approval, or gave this error instead."""
        self._in_flight.discard(record.id)
        if error is None:
            record.approval, record.approval_error = ACCEPTED, ""
            self.reset(record)
            self._keep(record, "approved", "IMDS took the approval; Azure starts the event when it can", "notice")
            return
        self._outcome_unknown.add(record.id)
        count = self._errors_in_a_row[record.id] = self._errors_in_a_row.get(record.id, 0) + 1
        record.approval = SENT if error.retryable else REFUSED
        record.approval_error = str(error)
        pause = (
            min(2.0 ** min(count - 1, 10), _LONGEST_PAUSE)
            if error.retryable
            else self._pause_after_refusal(record, count)
        )
        if error.retryable and error.retry_after is not None:
            pause = max(1.0, min(error.retry_after, _LONGEST_PAUSE))
        self._not_before[record.id] = self._clock.monotonic() + pause
        level = "warning" if error.retryable else "error"
        self._keep(
            record,
            "approval-failed",
            f"{error}; the events are read again, and it is sent again if the event is still Scheduled",
            level,
        )

    def _pause_after_refusal(self, record: EventRecord, count: int) -> float:
        """Seconds before the next request. count: how many have failed in a row."""
        if count == 1:
            return _PAUSE_AFTER_FIRST_REFUSAL
        left = record.event.seconds_left(self._clock.now())
        return _PAUSE_IN_SHORT_TIME if left < _SHORT_TIME else _PAUSE_AFTER_REFUSAL

    def request_manual(
        self, record: EventRecord, who: str, own_name: str | None, prepared: str, force: bool, release_others: bool
    ) -> ManualApprovalAnswer:
        """A person wants the event approved."""
        event = record.event
        if record.approval == ACCEPTED:
            return ManualApprovalAnswer(True, ALREADY_APPROVED.text)
        blocked = blocked_by_state(event, record.seen_started)
        if blocked is not None:
            return ManualApprovalAnswer(False, blocked.text)
        if self.settings.dry_run:
            return ManualApprovalAnswer(False, "this is a dry run, in which nothing is approved")
        try:
            blocked = None if release_others else blocked_by_scope(event, own_name)
        except OwnNameUnknown as error:
            return ManualApprovalAnswer(False, str(error))
        if blocked is not None:
            return ManualApprovalAnswer(False, f"{blocked.text}, which needs --release-others")
        if prepared == "failed" and not force:
            return ManualApprovalAnswer(False, f"{PREPARATION_FAILED.text}, which needs --force")
        if not self._durable() and not force:
            return ManualApprovalAnswer(
                False, "the journal cannot be written, so that the approval would be forgotten, which needs --force"
            )
        pause = self._pausing.current()
        if pause is not None and not force:
            return ManualApprovalAnswer(False, f"{pause.text()}, which needs --force")
        record.approval_asked_by = who
        record.approval_forced = force
        self._keep(record, "approval-asked", f"by {who}{', forced' if force else ''}", "notice")
        if prepared != "ok" and not force:
            return ManualApprovalAnswer(True, "it will be approved when its preparation is done")
        return ManualApprovalAnswer(True, "it is approved now")

    def event_changed(self, record: EventRecord, fields: tuple[str, ...]) -> None:
        """The event is not what it was when somebody judged it."""
        if (
            record.approval != ACCEPTED
            and (record.approval or record.approval_asked_by)
            and set(fields) & set(EVALUATED_FIELDS)
        ):
            record.approval = record.approval_asked_by = record.approval_reason = record.approval_error = ""
            record.approval_forced = False
            self.reset(record)
            self._keep(record, "approval-withdrawn", "the event changed before IMDS had taken the approval", "warning")

    def reset(self, record: EventRecord) -> None:
        """Drop what is only needed while an approval is on its way."""
        for memory in (self._not_before, self._errors_in_a_row):
            memory.pop(record.id, None)
        self._outcome_unknown.discard(record.id)

    def _requested(self, record: EventRecord, decision: Decision, prepared: str) -> tuple[bool, str]:
        """Whether somebody wants the approval now, and why or why not."""
        if not record.approval_asked_by:
            return decision.due, decision.reason
        reason = f"asked for by {record.approval_asked_by}"
        if record.approval_forced or prepared == "ok":
            return True, reason
        blocked = PREPARATION_FAILED if prepared == "failed" else NOT_PREPARED
        return False, f"{reason}; but not now: {blocked.text}"

    def _blocked_by(self, record: EventRecord, own_name: str | None) -> str | None:
        event = record.event
        blocked = blocked_by_state(event, record.seen_started)
        if blocked is not None:
            return blocked.text
        now = self._clock.now()
        if record.approval_attempts and event.not_before is not None and event.seconds_left(now) <= 0:
            return "its time has come, so that Azure starts it anyhow"
        if record.absences:
            return "the last document does not list the event for this VM any more; it counts as over after one more"
        if record.resources_unknown:
            return "the last document does not say which VMs the event affects"
        if self._last_poll_failed:
            return "IMDS gives no good answer, so that nobody knows whether the event is still what it was"
        if record.id in self._outcome_unknown:
            return "the last request went wrong, so that the events are looked at first"
        if not self._durable() and not record.approval_forced:
            return "the journal cannot be written, so that the approval would be forgotten"
        pause = self._pausing.current()
        if pause is not None and not record.approval_forced:
            return pause.text()
        if record.approval_asked_by:
            return None
        age = max(0.0, (now - record.first_seen).total_seconds())
        try:
            return leader.blocked_by(event, own_name, self.settings.leader, self.settings.takeover_after, age)
        except OwnNameUnknown as error:
            return str(error)
