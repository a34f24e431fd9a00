# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decides which event is approved now, by the policy or for an operator, and says why an event is not. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Mapping, NamedTuple

from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import API_VERSION
from azure_scheduled_events.errors import ImdsError, OwnNameUnknown
from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.policy import NEVER, Decision
from azure_scheduled_events.printable import printable
from azure_scheduled_events.release import (
    ALREADY_APPROVED,
    NOT_PREPARED,
    ONE_DOCUMENT,
    OTHERS_AFFECTED,
    PREPARATION_FAILED,
    STARTED,
    UNKNOWN_VALUES,
    UNREADABLE,
    Obstacle,
    Report,
    all_vms,
    own_obstacles,
    seconds_to_turn,
)
from hook_runner.config.values import EXTERNAL, SELF_ONLY
from hook_runner.maintenance import reasons
from hook_runner.maintenance.awaited_gates import awaited_gates
from hook_runner.maintenance.hook_plan import Host
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import ApprovalRequest, EventRecord
from hook_runner.records import ACCEPTED, REFUSED, SENT

_LONGEST_PAUSE = 10.0
# seconds after a refusal: the cause of the first one may have passed, and shortly before NotBefore every attempt counts
_PAUSE_AFTER_FIRST_REFUSAL = 1.0
_PAUSE_AFTER_REFUSAL = 30.0
_PAUSE_IN_SHORT_TIME = 5.0
_SHORT_TIME = 120.0
# obstacles for which an operator's request is refused: in any case, or without an option
_FINAL = {STARTED.code, UNREADABLE.code, reasons.DRY_RUN.code, reasons.OWN_NAME_UNKNOWN.code}
_FORCED = (reasons.OTHER_VMS.code, PREPARATION_FAILED.code, reasons.NOT_DURABLE.code, reasons.PAUSED)
_OPTIONS = {OTHERS_AFFECTED: "--release-others", **dict.fromkeys((*UNKNOWN_VALUES, *_FORCED), "--force")}


class Answer(NamedTuple):
    """The answer to an operator's request.

    Attributes:
        accepted: whether the daemon does it, now or later.
        text: one sentence.
        withheld: whether it is later only because something is not as it should be.
    """

    accepted: bool
    text: str
    withheld: bool = False


class _Failed(NamedTuple):
    """The last requests of an event, which failed: how many, when the last one did, and the pause after it."""

    times: int
    at: datetime
    pause: timedelta


class Approvals:
    """The requests for approvals, one at a time. What it knows of them is not stored: a new process begins again.

    Attributes:
        noted: the event whose approval is noted, and not sent yet; "" without one.
    """

    def __init__(self, host: Host, records: OpenRecords) -> None:
        self.host = host
        self._records = records
        self.noted = ""
        # the event whose request has no answer
        self._in_flight = ""
        # why the events may differ from those that are known, until the next document
        self._unsure: Obstacle | None = reasons.NO_ANSWER
        self._failed: dict[str, _Failed] = {}

    def document_received(self) -> None:
        """Note a good document: it shows the effect of earlier requests."""
        self._unsure = None

    def poll_failed(self) -> None:
        """Note that a poll failed; nothing is approved before the next document."""
        self._unsure = reasons.NO_ANSWER

    @property
    def awaits_document(self) -> bool:
        """Whether an approval waits for the next document."""
        return self._unsure is not None

    def forget(self, key: str) -> None:
        """Forget the requests for an event that is gone."""
        self._failed.pop(key, None)
        if self.noted == key:
            self.noted = ""

    # -- decisions

    def decide(self, record: EventRecord, now: datetime, gates: Mapping[str, bool]) -> Decision:
        """Return the decision of the policy about the event now; its reason names the gates for which it waits."""
        policy = self.host.settings.policy
        observation = self._records.observation
        context = PolicyContext(
            now=now,
            own_name=self.host.own_name or None,
            api_version=API_VERSION if observation is None else observation.document.api_version,
            first_seen=record.first_seen,
            seen_started=record.is_started,
            approved_by_us=record.approval == ACCEPTED,
            previous_type=record.first_type if record.first_type != record.event.event_type else None,
            prepared=record.prepared,
            gates=gates,
        )
        try:
            decision = policy.decide(record.event, context)
        except OwnNameUnknown as error:
            return Decision(NEVER, str(error), reasons.OWN_NAME_UNKNOWN.code, hold=True)
        awaited = awaited_gates(policy, record.event, context, decision)
        return (
            decision._replace(reason=f"{decision.reason}; closed gates: {', '.join(awaited)}") if awaited else decision
        )

    def obstacle(self, record: EventRecord, decision: Decision, now: datetime) -> Obstacle | None:
        """Return why the event is not approved now, or None where it is.

        1. IMDS has taken an approval already.
        2. The policy approves it now, unless the event, the other VMs of it, or the state of the daemon prevent it.
        3. Otherwise an operator may ask for it, with the same exceptions.
        """
        if record.approval == ACCEPTED:
            return reasons.ACCEPTED
        asked, by_rule = record.requested, self._obstacle_by_rule(record, decision, now)
        if by_rule is None or asked is None:
            return by_rule
        if not asked.force and record.prepared != "ok":
            return PREPARATION_FAILED if record.prepared == "failed" else NOT_PREPARED
        return next(iter(self._obstacles(record, asked, now)), None)

    def _obstacle_by_rule(self, record: EventRecord, decision: Decision, now: datetime) -> Obstacle | None:
        if decision.code is not None:
            return Obstacle(decision.code, decision.reason)
        return next(iter(self._obstacles(record, None, now)), None)

    def send(self, record: EventRecord, decision: Decision, now: datetime) -> bool:
        """Note the approval of an event; return True if it is sent now, because the note is on the disk or is forced.

        The note names the operator only if the policy alone would not approve the event.
        """
        asked = record.requested if self._obstacle_by_rule(record, decision, now) is not None else None
        if self.noted != record.key:
            self.noted = record.key
            record.approval, record.approval_by = SENT, f"asked for by {asked.who}" if asked else decision.reason
            self._records.note(now, "approval-sent", record.approval_by, record, "notice")
        is_forced = asked is not None and asked.force
        if self._records.has_changed and not is_forced:
            return False  # the tick after the write sends it
        self.noted, self._in_flight = "", record.key
        return True

    def take_back(self, record: EventRecord) -> None:
        """Take back the note of an approval that was not sent."""
        self.noted = ""
        record.approval, record.approval_by, self._records.has_changed = "", "", True

    def _obstacles(self, record: EventRecord, asked: ApprovalRequest | None, now: datetime) -> list[Obstacle]:
        """Return what prevents an approval that the policy, or an operator, asks for.

        Either speaks for this VM. For the other VMs speaks an operator who says so, or the leader. An operator who
        forces the approval releases unknown values, too.
        """
        if asked is None:
            held = self._why_not_leader(record, now)
        else:
            held = None if asked.release_others else "the operator releases this VM only"
        report = Report(self._records.sightings.get(record.key), True, self._own_obstacle(record, asked, now))
        try:
            found = own_obstacles(report, self.host.own_name, releases_others=held is None)
        except OwnNameUnknown as error:
            return [Obstacle(reasons.OWN_NAME_UNKNOWN.code, str(error))]
        if asked is not None and asked.force:
            found = [each for each in found if each.code not in UNKNOWN_VALUES]
        if self.host.settings.dry_run:
            found.append(reasons.DRY_RUN)
        return [
            each._replace(text=f"{each.text}, and {held}") if each.code == OTHERS_AFFECTED and asked is None else each
            for each in found
        ]

    def _why_not_leader(self, record: EventRecord, now: datetime) -> str | None:
        """Return why this VM does not release the other VMs of the event by a rule, as a clause; None where it does.

        See docs/reference/scheduled-events.md 2.2.4 and 2.2.5.

        1. With SELF_ONLY and EXTERNAL it never does.
        2. With FIRST the first VM of the event, by name, does at once, and each next one `takeover_after` seconds after
           the one before it.
        """
        settings, resources = self.host.settings, record.event.resources
        if settings.leader == SELF_ONLY:
            return "leader is self-only"
        if settings.leader == EXTERNAL:
            return "an external leader approves it"
        age = max(0.0, (now - record.first_seen).total_seconds())
        wait = seconds_to_turn(resources, self.host.own_name, settings.takeover_after, age)
        if wait is None:
            return "this VM is not one of them"
        if wait <= 0:
            return None
        vms = all_vms([resources])
        return f"{vms[min(vms)]} leads; this VM takes over in {wait:.0f} s"

    def _own_obstacle(self, record: EventRecord, asked: ApprovalRequest | None, now: datetime) -> Obstacle | None:
        """Return why this VM sends no approval now, or None.

        1. The records are not on the disk, or the daemon is paused. An operator can force the approval.
        2. NotBefore has passed. This prevents only a repeated request.
        3. The last poll or the last request failed, or fewer than two documents have come.
        4. The last document gives the event a less severe type, which is not confirmed yet.
        """
        if asked is None or not asked.force:
            if not self._records.is_durable:
                return reasons.NOT_DURABLE
            if self._records.state.pause is not None:
                return reasons.paused(str(self._records.state.pause))
        event, failed = record.event, self._failed.get(record.key)
        if failed is not None and event.not_before is not None and event.seconds_left(now) <= 0:
            return reasons.NOT_BEFORE_PASSED
        if self._unsure is not None:
            return self._unsure
        if not self._records.is_confirmed:
            return ONE_DOCUMENT
        if not self._records.has_listed_type(record):
            return reasons.TYPE_UNCONFIRMED
        if self._in_flight:
            return reasons.IN_FLIGHT
        # a clock that was set back must not prolong the pause by much
        is_waiting = failed is not None and abs(now - failed.at) < failed.pause
        return reasons.REQUEST_WAITS if is_waiting else None

    # -- answers of IMDS

    def answered(self, key: str, error: ImdsError | None, now: datetime) -> None:
        """Note that IMDS took the approval of an event, or that the request failed."""
        self._in_flight = ""
        if error is not None:
            self._unsure = reasons.REQUEST_FAILED
        record = self._records.find(key)
        if record is None:
            return
        if error is None:
            record.approval, record.approval_error = ACCEPTED, ""
            self._failed.pop(key, None)
            self._records.note(now, "approved", reasons.ACCEPTED.text, record, "notice")
            return
        count = self._failed[key].times + 1 if key in self._failed else 1
        pause = _pause_after(count, error, record.event.seconds_left(now))
        self._failed[key] = _Failed(count, now, timedelta(seconds=pause))
        record.approval, record.approval_error = SENT if error.retryable else REFUSED, str(error)
        text = f"{error}; it is sent again if the event is still Scheduled"
        self._records.note(now, "approval-failed", text, record, "warning" if error.retryable else "error")

    def withheld(self, key: str, now: datetime) -> None:
        """Note that a request was not sent: something has changed since the decision."""
        self._in_flight = ""
        record = self._records.find(key)
        if record is not None:
            self.take_back(record)
            text = "the event changed, or a pause or a reload came, before the request was sent"
            self._records.note(now, "approval-held", text, record, "notice")

    # -- requests of operators

    def request(self, record: EventRecord, request: ApprovalRequest, now: datetime) -> Answer | None:
        """Note an operator's request to approve an event, and return None; otherwise return the answer.

        It is refused if the event cannot be approved at all, or only with an option that the request lacks. A pause
        after requests that failed ends: the operator may have corrected the cause.
        """
        if record.approval == ACCEPTED:
            return Answer(True, ALREADY_APPROVED.text)
        vms = frozenset(map(vm_key, record.event.resources))
        asked = request._replace(vms=vms, event_type=record.event.event_type)
        found = self._obstacles(record, asked, now)
        if not asked.force:
            found += [] if self.host.is_affected_by(record.event) else [reasons.OTHER_VMS]
            found += [PREPARATION_FAILED] if record.prepared == "failed" else []
        for obstacle in found:
            if obstacle.code in _FINAL:
                return Answer(False, obstacle.text)
            if obstacle.code in _OPTIONS:
                return Answer(False, f"{obstacle.text}, which needs {_OPTIONS[obstacle.code]}")
        record.requested = asked
        if record.key in self._failed:
            self._failed[record.key] = self._failed[record.key]._replace(pause=timedelta(0))
        forced = ", forced" if asked.force else ""
        self._records.note(now, "approval-asked", f"by {printable(asked.who)}{forced}", record, "notice")
        return None

    def answer(self, record: EventRecord, reason: Obstacle | None) -> Answer:
        """Return the answer to a request that was noted, after the tick that followed."""
        if self._in_flight == record.key or record.approval == ACCEPTED:
            return Answer(True, "its approval is sent to IMDS now")
        if record.prepared != "ok" and not (record.requested and record.requested.force):
            return Answer(True, "it will be approved when its preparation is done")
        text = record.approval_error or (reason.text if reason else "it waits for the records")
        return Answer(True, f"it is not approved yet: {text}; the daemon approves it as soon as it can", True)


def _pause_after(failures: int, error: ImdsError, seconds_left: float) -> float:
    """Return the seconds between a failed request and the next one.

    1. After an error that may pass, it is what IMDS asks for, or 1 s, doubled with each failure in a row; at most
       _LONGEST_PAUSE.
    2. After a refusal that is the first failure, it is _PAUSE_AFTER_FIRST_REFUSAL.
    3. After any other refusal, it is _PAUSE_AFTER_REFUSAL, or _PAUSE_IN_SHORT_TIME shortly before NotBefore.
    """
    if error.retryable:
        if error.retry_after is not None:
            return max(1.0, min(error.retry_after, _LONGEST_PAUSE))
        return float(min(2.0 ** min(failures - 1, 10), _LONGEST_PAUSE))
    if failures == 1:
        return _PAUSE_AFTER_FIRST_REFUSAL
    return _PAUSE_IN_SHORT_TIME if seconds_left < _SHORT_TIME else _PAUSE_AFTER_REFUSAL
