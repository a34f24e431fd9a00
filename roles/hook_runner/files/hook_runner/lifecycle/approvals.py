# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decides when the daemon approves an event: by the policy or for an operator, again if a request is lost."""

from __future__ import annotations

from typing import Callable, Iterable, NamedTuple

from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import API_VERSION, ScheduledEvent, escape_surrogates
from azure_scheduled_events.errors import ImdsError, OwnNameUnknown
from azure_scheduled_events.policy import NEVER, Decision
from azure_scheduled_events.release import (
    ALREADY_APPROVED,
    NOT_PREPARED,
    ONE_DOCUMENT,
    OTHERS_AFFECTED,
    PREPARATION_FAILED,
    STARTED,
    UNKNOWN_VALUES,
    Obstacle,
    Report,
    own_obstacles,
)
from hook_runner.clock import ServerClock
from hook_runner.gates import open_gates
from hook_runner.lifecycle import leader
from hook_runner.lifecycle.awaited_gates import awaited_gates
from hook_runner.lifecycle.pause import Pausing
from hook_runner.lifecycle.runtime import Runtime
from hook_runner.permissions import trusted_owners
from hook_runner.records import ACCEPTED, REFUSED, SENT, EventRecord

# fields that policies evaluate: a manual approval is void when one of them changes
EVALUATED_FIELDS = ("event_type", "resources", "resource_type", "source", "duration")

# one document after the start may come from a backend that lags behind
_DOCUMENTS_NEEDED = 2
_LONGEST_PAUSE = 10.0
# seconds after a refusal: the cause of the first one may have passed, and shortly before NotBefore
# every attempt counts
_PAUSE_AFTER_FIRST_REFUSAL = 1.0
_PAUSE_AFTER_REFUSAL = 30.0
_PAUSE_IN_SHORT_TIME = 5.0
_SHORT_TIME = 120.0

_NOT_DURABLE = Obstacle("not_durable", "records cannot be written, and a restart would forget the approval")
_NOT_BEFORE_PASSED = Obstacle("not_before_passed", "NotBefore has passed; Azure starts the event without an approval")
_NO_ANSWER = Obstacle("no_answer", "IMDS gives no good answer; the event may have changed")
_LAST_REQUEST_FAILED = Obstacle("last_request_failed", "the last request failed; the events are read again first")
# the options with which an operator overcomes an obstacle
_OPTIONS = {OTHERS_AFFECTED: "--release-others", **dict.fromkeys(UNKNOWN_VALUES, "--force")}


class ManualRequest(NamedTuple):
    """An operator's request to approve an event.

    Attributes:
        who: the operator.
        force: approve even though the preparation failed or is not done.
        release_others: approve even though the event affects other VMs too.
    """

    who: str
    force: bool
    release_others: bool


class ManualAnswer(NamedTuple):
    """The daemon's answer to an operator's request.

    Attributes:
        accepted: whether the daemon does it, now or later.
        text: one sentence.
        withheld: whether it is later only because something is not as it should be.
    """

    accepted: bool
    text: str
    withheld: bool = False


class Approver:
    """Decides, for one record at a time, whether an approval is sent now.

    `send` hands (record, event) to the poller, and the answer arrives by `answer_received`. `is_durable`
    writes everything to the disk, and returns whether it could. Otherwise nothing is approved unless an operator
    forces it, because a restart would forget the approval. `record` adds (record, keyword, sentence, level) to
    the timeline.
    """

    def __init__(
        self,
        runtime: Runtime,
        clock: ServerClock,
        send: Callable[[EventRecord, ScheduledEvent], None],
        is_durable: Callable[[], bool],
        record: Callable[[EventRecord, str, str, str], None],
        pausing: Pausing,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._send = send
        self._is_durable = is_durable
        self._record = record
        self._pausing = pausing
        # until the first and the next document, the events may differ from those that are known
        self._last_poll_failed = True
        self._documents = 0
        self._api_version = API_VERSION

    def document_received(self, records: Iterable[EventRecord], api_version: str) -> None:
        """Note that a document came; it shows the effect of the earlier requests."""
        for record in records:
            record.attempt.outcome_unknown = False
        self._last_poll_failed = False
        self._api_version = api_version

    def compared(self, documents: int) -> None:
        """Note how many documents the events rest on."""
        self._documents = documents

    def poll_failed(self) -> None:
        """Note that a poll failed; nothing is approved before the next document."""
        self._last_poll_failed = True

    @property
    def is_confirmed(self) -> bool:
        """True if the last poll succeeded, and a second document has confirmed the events since the start."""
        return not self._last_poll_failed and self._documents >= _DOCUMENTS_NEEDED

    def awaits_observation(self, records: Iterable[EventRecord]) -> bool:
        """Return True if a request for one of the records is withheld until the next document."""
        return not self.is_confirmed or any(record.attempt.outcome_unknown for record in records)

    def decide(self, record: EventRecord, prepared: str) -> Decision:
        """Return the decision of the policy about the event now.

        `prepared` is the state of its preparation, see `Engine.preparation_state`. The reason of the decision
        names the closed gates for which the policy waits. If the policy needs this VM's name, which is unknown,
        the event is held, and not approved.
        """
        policy = self._runtime.settings.policy
        context = PolicyContext(
            now=self._clock.now(),
            own_name=self._runtime.own_name,
            api_version=self._api_version,
            first_seen=record.first_seen,
            seen_started=record.seen_started,
            approved_by_us=record.approval == ACCEPTED,
            previous_type=record.first_type if record.first_type != record.event.event_type else None,
            prepared=prepared,
            gates=open_gates(self._runtime.settings.gates, trusted_owners()),
        )
        try:
            decision = policy.decide(record.event, context)
        except OwnNameUnknown as error:
            return Decision(NEVER, False, None, str(error), hold=True)
        awaited = awaited_gates(policy, record.event, context, decision)
        return (
            decision._replace(reason=f"{decision.reason}; closed gates: {', '.join(awaited)}") if awaited else decision
        )

    def send_if_due(self, record: EventRecord, decision: Decision, prepared: str) -> None:
        """Send an approval if it is due, permitted and not in flight.

        1. An approval that IMDS has accepted is not sent again.
        2. The approval is due if the policy or an operator requests it now (`_requested`), and permitted if
           nothing blocks it (`_blocked_by`). The reasons are noted for `status`.
        3. It also waits for the answer to the last request, and for the pause after one that failed.
        4. In a dry run it is only noted, once for each event.
        5. Otherwise the request is written to the disk, and then handed to the poller. If it cannot be written,
           it is sent only if an operator forces it.
        """
        attempt = record.attempt
        if record.approval == ACCEPTED:
            attempt.explanation = "approved, and waits for Azure to start it: " + record.approval_reason
            return
        due, reason = self._requested(record, decision, prepared)
        blocked = self._blocked_by(record) if due else None
        attempt.explanation = "; but not now: ".join(filter(None, (reason, blocked)))
        if not due or blocked is not None or attempt.in_flight or self._clock.monotonic() < attempt.not_before:
            return
        if self._runtime.settings.dry_run:
            if not record.approval_reason:
                record.approval_reason = reason
                self._record(record, "dry-run", "it would be approved now: " + reason, "notice")
            return
        record.approval, record.approval_reason = SENT, reason
        record.approval_attempts += 1
        self._record(record, "approval-sent", reason, "notice")
        if self._is_durable() or record.approval_forced:
            attempt.in_flight = True
            self._send(record, record.event)

    def request_withheld(self, record: EventRecord) -> None:
        """Note that the poller did not send a request, because the event had changed since the evaluation."""
        record.attempt.in_flight = False
        record.approval = ""
        reason = "the event changed before the request was sent; it is evaluated again"
        self._record(record, "approval-held", reason, "notice")

    def answer_received(self, record: EventRecord, error: ImdsError | None) -> None:
        """Note that IMDS accepted the approval, or failed with this error."""
        attempt = record.attempt
        attempt.in_flight = False
        if error is None:
            record.approval, record.approval_error = ACCEPTED, ""
            attempt.forget_failures()
            self._record(record, "approved", "IMDS took the approval; Azure starts the event when it can", "notice")
            return
        attempt.outcome_unknown = True
        attempt.failures += 1
        attempt.not_before = self._clock.monotonic() + self._pause_after(record, error)
        record.approval = SENT if error.retryable else REFUSED
        record.approval_error = str(error)
        reason = f"{error}; the events are read again, and it is sent again if the event is still Scheduled"
        self._record(record, "approval-failed", reason, "warning" if error.retryable else "error")

    def _pause_after(self, record: EventRecord, error: ImdsError) -> float:
        """Return the seconds between a failed request and the next one.

        1. After an error that may pass, it is what IMDS asks for, or 1 s, doubled with each failure in a row;
           at most _LONGEST_PAUSE.
        2. After a refusal that is the first failure, it is _PAUSE_AFTER_FIRST_REFUSAL.
        3. After any other refusal, it is _PAUSE_AFTER_REFUSAL, or _PAUSE_IN_SHORT_TIME shortly before
           NotBefore.
        """
        failures = record.attempt.failures
        if error.retryable:
            if error.retry_after is not None:
                return max(1.0, min(error.retry_after, _LONGEST_PAUSE))
            return min(2.0 ** min(failures - 1, 10), _LONGEST_PAUSE)
        if failures == 1:
            return _PAUSE_AFTER_FIRST_REFUSAL
        left = record.event.seconds_left(self._clock.now())
        return _PAUSE_IN_SHORT_TIME if left < _SHORT_TIME else _PAUSE_AFTER_REFUSAL

    def request_manual(self, record: EventRecord, request: ManualRequest, prepared: str) -> ManualAnswer | None:
        """Accept or refuse an operator's request to approve the event; None if the approval may be sent now.

        `prepared` is the state of its preparation, see `Engine.preparation_state`.

        1. A request for an event that is approved already is accepted, and changes nothing.
        2. The event or its preparation may be a reason to refuse the request.
        3. Any other request is noted, and replaces an earlier one.
        4. If the preparation is not done and the request is not forced, the answer says that the approval comes
           later.
        """
        if record.approval == ACCEPTED:
            return ManualAnswer(True, ALREADY_APPROVED.text)
        refusal = self._refused_by_event(record, request) or self._refused_without_force(record, request, prepared)
        if refusal is not None:
            return ManualAnswer(False, refusal)
        record.approval_asked_by = request.who
        record.approval_forced = request.force
        self._record(record, "approval-asked", f"by {request.who}{', forced' if request.force else ''}", "notice")
        if prepared != "ok" and not request.force:
            return ManualAnswer(True, "it will be approved when its preparation is done")
        return None

    def answer_to_accepted(self, record: EventRecord) -> ManualAnswer:
        """Return the answer to an accepted request, after the attempt to send the approval."""
        if record.attempt.in_flight:
            return ManualAnswer(True, "its approval is sent to IMDS now")
        reason = self._blocked_by(record) or record.approval_error or record.attempt.explanation
        return ManualAnswer(True, f"it is not approved yet: {reason}; the daemon approves it as soon as it can", True)

    def _refused_by_event(self, record: EventRecord, request: ManualRequest) -> str | None:
        """Return why the event cannot be approved at all, or only with an option that the request lacks.

        1. The event has started.
        2. In a dry run nothing is approved.
        3. A value of the event is unknown; not requested with --force.
        4. The event also affects other VMs, or this VM's name is unknown; not requested with --release-others.
        """
        if record.seen_started:
            return STARTED.text
        if self._runtime.settings.dry_run:
            return "nothing is approved in a dry run"
        try:
            found = own_obstacles(Report(record.sighting, True), self._runtime.own_name, request.release_others)
        except OwnNameUnknown as error:
            return str(error)
        for obstacle in found:
            if obstacle.code == OTHERS_AFFECTED or (obstacle.code in UNKNOWN_VALUES and not request.force):
                return f"{obstacle.text}, which needs {_OPTIONS[obstacle.code]}"
        return None

    def _refused_without_force(self, record: EventRecord, request: ManualRequest, prepared: str) -> str | None:
        """Return why the event can be approved only with --force, or None.

        The reasons, in this order: it does not affect this VM; its preparation failed; records cannot be
        written; the daemon is paused.
        """
        if request.force:
            return None
        pause = self._pausing.current()
        if not record.affects_this_vm:
            reason = "it does not affect this VM"
        elif prepared == "failed":
            reason = PREPARATION_FAILED.text
        elif not self._is_durable():
            reason = _NOT_DURABLE.text
        elif pause is not None:
            reason = pause.text()
        else:
            return None
        return f"{reason}, which needs --force"

    def event_changed(self, record: EventRecord, fields: tuple[str, ...]) -> None:
        """Withdraw an approval that is not accepted yet if a field changed that was evaluated for it."""
        if (
            record.approval != ACCEPTED
            and (record.approval or record.approval_asked_by)
            and set(fields) & set(EVALUATED_FIELDS)
        ):
            record.approval = record.approval_asked_by = record.approval_reason = record.approval_error = ""
            record.approval_forced = False
            record.attempt.forget_failures()
            reason = "the event changed before IMDS had taken the approval"
            self._record(record, "approval-withdrawn", reason, "warning")

    def _requested(self, record: EventRecord, decision: Decision, prepared: str) -> tuple[bool, str]:
        """Return whether the policy or an operator requests the approval now, and why or why not.

        If an operator has asked for it, the policy does not count: it is requested when the preparation has
        succeeded, or at once if it is forced.
        """
        if not record.approval_asked_by:
            return decision.due, decision.reason
        reason = f"asked for by {record.approval_asked_by}"
        if record.approval_forced or prepared == "ok":
            return True, reason
        blocked = PREPARATION_FAILED if prepared == "failed" else NOT_PREPARED
        return False, f"{reason}; but not now: {blocked.text}"

    def _blocked_by(self, record: EventRecord) -> str | None:
        """Return why a requested approval is not sent now, or None.

        The policy or an operator states that this VM is prepared; an operator or the leader releases the other VMs.
        The state of the event counts first, then that of the daemon, then the other VMs. An operator who forces the
        approval releases unknown values, too.
        """
        settings = self._runtime.settings
        held = None
        if not record.approval_asked_by:
            age = max(0.0, (self._clock.now() - record.first_seen).total_seconds())
            held = leader.blocked_by(
                record.event, self._runtime.own_name, settings.leader, settings.takeover_after, age
            )
        report = Report(record.sighting, True, self._own_obstacle(record))
        try:
            found = own_obstacles(report, self._runtime.own_name, releases_others=held is None)
        except OwnNameUnknown as error:
            return str(error)
        for obstacle in found:
            if not (record.approval_forced and obstacle.code in UNKNOWN_VALUES):
                return f"{obstacle.text}, and {held}" if obstacle.code == OTHERS_AFFECTED else obstacle.text
        return None

    def _own_obstacle(self, record: EventRecord) -> Obstacle | None:
        """Return why this VM must not send the approval now, or None.

        1. NotBefore has passed. This blocks repeated requests only, not the first one.
        2. The last document lacks a VM of the event that may not be gone.
        3. The last poll failed, fewer than two documents have come, or none has come since the last request
           failed. This blocks a forced approval too.
        4. Records cannot be written.
        5. The daemon is paused.
        """
        event = record.event
        if record.approval_attempts and event.not_before is not None and event.seconds_left(self._clock.now()) <= 0:
            return _NOT_BEFORE_PASSED
        if record.leaving:
            names = escape_surrogates(", ".join(record.leaving))
            return Obstacle(
                "leaving", f"the last document does not list {names}, but an approval may still release them"
            )
        if self._last_poll_failed:
            return _NO_ANSWER
        if self._documents < _DOCUMENTS_NEEDED:
            return ONE_DOCUMENT
        if record.attempt.outcome_unknown:
            return _LAST_REQUEST_FAILED
        if record.approval_forced:
            return None
        if not self._is_durable():
            return _NOT_DURABLE
        pause = self._pausing.current()
        return None if pause is None else Obstacle("paused", pause.text())
