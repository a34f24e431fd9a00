# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When an event is approved, and that it is not lost: by the policy, by a person, once."""

from __future__ import annotations

from typing import Callable, Iterable

from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.errors import ImdsError, OwnNameUnknown
from azure_scheduled_events.identity import affects_only
from azure_scheduled_events.named_tuple import NamedTuple
from azure_scheduled_events.policy import NEVER, Decision
from hook_runner.clock import ServerClock
from hook_runner.gates import open_gates
from hook_runner.lifecycle import leader
from hook_runner.lifecycle.pause import Pausing
from hook_runner.lifecycle.runtime import Runtime
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
        runtime: settings and this VM's name.
        clock: the server's clock.
        send: hands (record, event) to whoever talks to IMDS; the answer comes back by `answered`.
        durable: whether the journal can keep what is decided; nothing is approved that would be
            forgotten.
        keep: notes (record, word, sentence, level) in the timeline and saves the record.
        pausing: knows whether an operator has paused the daemon.
    """

    def __init__(
        self,
        runtime: Runtime,
        clock: ServerClock,
        send: Callable[[EventRecord, ScheduledEvent], None],
        durable: Callable[[], bool],
        keep: Callable[[EventRecord, str, str, str], bool],
        pausing: Pausing,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._send = send
        self._durable = durable
        self._keep = keep
        self._pausing = pausing
        # until the next document, the events may differ from those that the policy has evaluated
        self._last_poll_failed = False

    def document_received(self, records: Iterable[EventRecord]) -> None:
        """Note that a document came; it shows the effect of the earlier requests."""
        for record in records:
            record.attempt.outcome_unknown = False
        self._last_poll_failed = False

    def poll_failed(self) -> None:
        """A look at the events brought nothing: nothing is approved on what was true before."""
        self._last_poll_failed = True

    def awaits_observation(self, records: Iterable[EventRecord]) -> bool:
        """Return True if a request for one of the records is withheld until the next document."""
        return self._last_poll_failed or any(record.attempt.outcome_unknown for record in records)

    def decide(self, record: EventRecord, prepared: str) -> Decision:
        """What the policy says about the event at this moment."""
        context = PolicyContext(
            now=self._clock.now(),
            own_name=self._runtime.own_name,
            api_version=self._runtime.settings.api_version[0],
            first_seen=record.first_seen,
            seen_started=record.seen_started,
            approved_by_us=record.approval == ACCEPTED,
            previous_type=record.first_type if record.first_type != record.event.event_type else None,
            prepared=prepared,
            gates=open_gates(self._runtime.settings.gates, trusted_owners()),
        )
        try:
            return self._runtime.settings.policy.decide(record.event, context)
        except OwnNameUnknown as error:
            return Decision(NEVER, False, ("hold",), None, str(error))

    def send_if_due(self, record: EventRecord, decision: Decision, prepared: str) -> None:
        """Send an approval if it is due, permitted, and not on its way already."""
        if record.approval == ACCEPTED:
            record.attempt.explanation = "approved, and waits for Azure to start it: " + record.approval_reason
            return
        due, reason = self._requested(record, decision, prepared)
        obstacle = self._blocked_by(record) if due else None
        record.attempt.explanation = "; but not now: ".join(filter(None, (reason, obstacle)))
        if (
            not due
            or obstacle is not None
            or record.attempt.in_flight
            or self._clock.monotonic() < record.attempt.not_before
        ):
            return
        if self._runtime.settings.dry_run:
            if not record.approval_reason:
                record.approval_reason = reason
                self._keep(record, "dry-run", "it would be approved now: " + reason, "notice")
            return
        record.approval, record.approval_reason = SENT, reason
        record.approval_attempts += 1
        if self._keep(record, "approval-sent", reason, "notice") or record.approval_forced:
            record.attempt.in_flight = True
            self._send(record, record.event)

    def request_withheld(self, record: EventRecord) -> None:
        """The request was not sent, because the event was not any more what it had been when it was judged."""
        record.attempt.in_flight = False
        record.approval = ""
        self._keep(
            record, "approval-held", "the event changed before the request was sent, and is judged anew", "notice"
        )

    def answer_received(self, record: EventRecord, error: ImdsError | None) -> None:
        """IMDS took the approval, or gave this error instead."""
        record.attempt.in_flight = False
        if error is None:
            record.approval, record.approval_error = ACCEPTED, ""
            record.attempt.forget_failures()
            self._keep(record, "approved", "IMDS took the approval; Azure starts the event when it can", "notice")
            return
        record.attempt.outcome_unknown = True
        record.attempt.failures += 1
        record.approval = SENT if error.retryable else REFUSED
        record.approval_error = str(error)
        pause = (
            min(2.0 ** min(record.attempt.failures - 1, 10), _LONGEST_PAUSE)
            if error.retryable
            else self._pause_after_refusal(record)
        )
        if error.retryable and error.retry_after is not None:
            pause = max(1.0, min(error.retry_after, _LONGEST_PAUSE))
        record.attempt.not_before = self._clock.monotonic() + pause
        level = "warning" if error.retryable else "error"
        self._keep(
            record,
            "approval-failed",
            f"{error}; the events are read again, and it is sent again if the event is still Scheduled",
            level,
        )

    def _pause_after_refusal(self, record: EventRecord) -> float:
        """Return the seconds before the next request."""
        if record.attempt.failures == 1:
            return _PAUSE_AFTER_FIRST_REFUSAL
        left = record.event.seconds_left(self._clock.now())
        return _PAUSE_IN_SHORT_TIME if left < _SHORT_TIME else _PAUSE_AFTER_REFUSAL

    def request_manual(
        self, record: EventRecord, who: str, prepared: str, force: bool, release_others: bool
    ) -> ManualApprovalAnswer:
        """A person wants the event approved."""
        event = record.event
        if record.approval == ACCEPTED:
            return ManualApprovalAnswer(True, "this host has approved it already; it waits for Azure to start it")
        if record.seen_started:
            return ManualApprovalAnswer(False, "it has started, so there is nothing left to approve")
        if event.status != "Scheduled":
            return ManualApprovalAnswer(False, f"its status {event.status!r} is not one that can be approved")
        if self._runtime.settings.dry_run:
            return ManualApprovalAnswer(False, "this is a dry run, in which nothing is approved")
        try:
            if not release_others and not affects_only(event, self._runtime.own_name):
                return ManualApprovalAnswer(
                    False,
                    "an approval would release other VMs too ({}), which needs --release-others".format(
                        ", ".join(event.resources)
                    ),
                )
        except OwnNameUnknown as error:
            if not release_others:
                return ManualApprovalAnswer(False, str(error))
        if prepared == "failed" and not force:
            return ManualApprovalAnswer(False, "its preparation failed, which needs --force")
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
            record.attempt.forget_failures()
            self._keep(record, "approval-withdrawn", "the event changed before IMDS had taken the approval", "warning")

    def _requested(self, record: EventRecord, decision: Decision, prepared: str) -> tuple[bool, str]:
        """Whether somebody wants the approval now, and why or why not."""
        if not record.approval_asked_by:
            return decision.due, decision.reason
        reason = f"asked for by {record.approval_asked_by}"
        if record.approval_forced or prepared == "ok":
            return True, reason
        return False, f"{reason}; but not now: its preparation {'failed' if prepared == 'failed' else 'is not done'}"

    def _blocked_by(self, record: EventRecord) -> str | None:
        event = record.event
        if event.status != "Scheduled" or record.seen_started:
            return "it has started already"
        now = self._clock.now()
        if record.approval_attempts and event.not_before is not None and event.seconds_left(now) <= 0:
            return "its time has come, so that Azure starts it anyhow"
        if record.absences:
            return "the last document does not list the event for this VM any more; it counts as over after one more"
        if record.resources_unknown:
            return "the last document does not say which VMs the event affects"
        if self._last_poll_failed:
            return "IMDS gives no good answer, so that nobody knows whether the event is still what it was"
        if record.attempt.outcome_unknown:
            return "the last request went wrong, so that the events are looked at first"
        if not self._durable() and not record.approval_forced:
            return "the journal cannot be written, so that the approval would be forgotten"
        pause = self._pausing.current()
        if pause is not None and not record.approval_forced:
            return pause.text()
        if record.approval_asked_by:
            return None
        settings = self._runtime.settings
        age = max(0.0, (now - record.first_seen).total_seconds())
        try:
            return leader.blocked_by(event, self._runtime.own_name, settings.leader, settings.takeover_after, age)
        except OwnNameUnknown as error:
            return str(error)
