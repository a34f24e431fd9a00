# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What is done about events: documents, ended hooks and people's wishes come in, hooks and approvals go out.

It asks nobody and waits for nobody: whoever owns it hands in each good document and calls `tick` now and then. What it
knows is in the records, so that after a restart it goes on from the journal.
"""

from __future__ import annotations

from typing import Callable, Optional

from azure_scheduled_events.changes import GONE, Change, changes
from azure_scheduled_events.document import EVENT_TYPES, EventDocument, ScheduledEvent, displayable
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import concerns
from azure_scheduled_events.policy import NEVER, Decision
from azure_scheduled_events.timestamps import as_utc_text

from hook_runner.approvals import Approvals, Asked
from hook_runner.configuration import Settings
from hook_runner.journal import Journal
from hook_runner.logs import Log
from hook_runner.pausing import Pausing
from hook_runner.records import CANCELLED_OR_MISSED, COMPLETED, EMERGENCY, PREPARE, RECOVER, STARTED, Entry, Record, Step
from hook_runner.runs import Runs
from hook_runner.server_clock import ServerClock
from hook_runner.stages import Hooks, outcome
from hook_runner.work import Work

# the order in which an event can become worse (spec 7.1 R3)
SEVERITY = {name: rank for rank, name in enumerate(EVENT_TYPES)}

# an event that changed every second would fill the disk otherwise; the log still has it all
LONGEST_TIMELINE = 1000


class Engine:
    """The daemon's mind. `records` are the events that are known now or not yet recovered from.

    Args:
        settings, hooks: as configured; see `reconfigure`.
        journal: remembers the records of events that concern this VM or that were approved here.
        runs: starts and ends hooks.
        clock: the server's clock.
        send_approval: hands (record, event) to whoever talks to IMDS; the answer comes back by `approval_answered`.
        log: gets a line for whatever happens.
        step_ended: told of each hook run that has ended, for metrics.
    """

    def __init__(
        self,
        settings: Settings,
        hooks: Hooks,
        journal: Journal,
        runs: Runs,
        clock: ServerClock,
        send_approval: Callable[[Record, ScheduledEvent], None],
        log: Log,
        step_ended: Callable[[Record, Step], None] = lambda record, step: None,
    ) -> None:
        self.settings = settings
        self.own_name: Optional[str] = settings.resource_name or None
        self._journal = journal
        self._runs = runs
        self._clock = clock
        self._log = log
        self.work = Work(settings, hooks, runs, clock, journal.next_id, self._keep, step_ended)
        self.pausing = Pausing(journal, clock, log)
        self.approvals = Approvals(settings, clock, send_approval, lambda: journal.degraded is None, self._keep, self.pausing)
        self._said: dict[int, tuple[object, ...]] = {}
        self._has_seen = False
        self.records: list[Record] = journal.open_records()
        if journal.is_known:  # else these may be the hooks of events that it will tell of
            self._runs.clean({step.id for record in self.records for step in record.steps})
        for record in self.records:
            self.work.take_over(record)

    def reconfigure(self, settings: Settings, hooks: Hooks) -> None:
        """Go on by other settings and hooks; what runs, runs on."""
        self.settings = self.work.settings = self.approvals.settings = settings
        self.work.hooks = hooks
        self._runs.environment, self._runs.tail, self._runs.kill_after = settings.environment, settings.output_tail, settings.kill_after

    def observe(self, document: EventDocument) -> None:
        """A good document came: note what has changed since the records were made, and act."""
        self._has_seen = True
        self.approvals.looked()
        known = EventDocument(None, tuple(record.event for record in self.records if record.gone_at is None))
        for change in changes(known, document):
            record = self._present(change.event)
            if record is None:
                self._appeared(change.event)
            elif change.kind == GONE:
                self._gone(record, "it is not listed any more")
            else:
                self._changed(record, change)
        self.tick()

    def tick(self) -> None:
        """Do what is due by now: note ended hooks, keep deadlines, begin hooks, send approvals."""
        if self._has_seen:
            self.pausing.expire()
        self.work.own_name = self.own_name or ""
        self.work.collect(self.records)
        # what is over comes first, so that one VM's recovery begins before the next preparation (T21)
        for record in sorted(self.records, key=lambda record: record.gone_at is None):
            # after a start nobody knows what has become of an event until a good document has told
            if self._has_seen or record.gone_at is not None:
                self._advance(record)
            elif self._clock.is_set():
                self.work.keep_time(record, PREPARE)  # what runs from before has no more time for that

    def approval_answered(self, record_id: int, error: Optional[ImdsError]) -> None:
        """IMDS took an approval, or gave this error instead."""
        for record in self.records:
            if record.id == record_id:
                self.approvals.answered(record, error)

    def approval_withheld(self, record_id: int) -> None:
        """An approval was not sent, because the event is not any more what was judged."""
        for record in self.records:
            if record.id == record_id:
                self.approvals.withdrawn(record)

    def missed(self) -> None:
        """A look at the events brought no good document."""
        self.approvals.missed()

    def approve_by_hand(self, event_id: str, who: str, force: bool, release_others: bool) -> Optional[Asked]:
        """A person wants an event approved; None where there is no such event."""
        record = next((record for record in self.records if record.key == event_id.casefold() and record.gone_at is None), None)
        if record is None:
            return None
        prepared = self.prepared(record) if record.concerned else "ok"
        asked = self.approvals.ask(record, who, self.own_name, prepared, force, release_others)
        self.tick()
        return asked

    def prepared(self, record: Record) -> str:
        """How far this VM's preparation for the event is: "none", "running", "ok" or "failed"."""
        if not record.concerned:
            return "none"
        state = outcome(self.work.hooks, record, PREPARE)
        if state == "running" and (record.seen_started or record.gone_at) and not self.work.runs_for(record, PREPARE):
            return "failed"  # it was cut short, and what is left of it will not run any more
        if state == "ok" and self.work.recovers():
            return "running"  # what recovers from another event may undo what was prepared
        return state

    def _present(self, event: ScheduledEvent) -> Optional[Record]:
        return next((record for record in self.records if record.gone_at is None and record.key == event.key), None)

    def _appeared(self, event: ScheduledEvent) -> None:
        if self.own_name is None:
            return  # nothing can be said about it before the name is known; it appears again with the next document
        life = max([self._journal.last_life(event.key)] + [record.life for record in self.records if record.key == event.key]) + 1
        record = Record(self._journal.next_id(), life, event, self._clock.now())
        record.concerned = concerns(event, self.own_name)
        self.records.append(record)
        self._keep(record, "appeared", self._described(record), "notice" if record.concerned else "info")
        if life > 1 and record.concerned:
            self._keep(record, "anomaly", "an event of this id was over before; it is taken for another one", "warning")

    def _changed(self, record: Record, change: Change) -> None:
        before, record.event = record.event, change.event
        if change.event.status == "Started" and not record.seen_started:
            record.seen_started = True
            self._keep(record, "started", self._described(record), "notice")
        else:
            told = ", ".join("%s: %s -> %s" % (name, _shown(before, name), _shown(change.event, name)) for name in change.fields)
            self._keep(record, "changed", told, "notice" if record.concerned else "info")
        if before.status == "Started" and change.event.status != "Started":
            self._keep(record, "anomaly", "it was Started and is %s again, which Azure rules out; nothing is done twice" % change.event.status, "warning")
        if SEVERITY.get(change.event.event_type, -1) > SEVERITY.get(before.event_type, -1):
            self._keep(record, "worse", "hooks for %s that have not run will run" % change.event.event_type, "warning")
        self.approvals.changed(record, change.fields)
        if "not_before" in change.fields and not record.seen_started:
            self.work.rescheduled(record, before)
        if "resources" in change.fields and self.own_name is not None:
            self._concern(record)

    def _concern(self, record: Record) -> None:
        """The list of VMs changed: this VM may have come to the event, or left it."""
        concerned = concerns(record.event, self.own_name)
        if concerned and not record.concerned:
            record.concerned = True
            self._keep(record, "concerns-us", "this VM has come to the event", "notice")
        elif record.concerned and not concerned:
            self._gone(record, "it does not hit this VM any more")

    def _gone(self, record: Record, how: str) -> None:
        record.gone_at = self._clock.now()
        record.outcome = COMPLETED if record.seen_started else CANCELLED_OR_MISSED
        text = how if record.seen_started else how + ", and was never seen Started: it was cancelled, or its start was missed"
        self._keep(record, "gone", text, "notice" if record.concerned else "info")

    def _advance(self, record: Record) -> None:
        if record.gone_at is not None:
            if self._recover(record):
                self._close(record)
        elif record.seen_started:
            self._start(record)
        elif record.event.status == "Scheduled":
            self._prepare(record)

    def _prepare(self, record: Record) -> None:
        if not record.concerned:
            if record.approval_asked_by:
                self.approvals.consider(record, Decision(NEVER, False, (), None, ""), self.own_name, "ok")
            return
        prepared = self.prepared(record)
        decision = self.approvals.decide(record, self.own_name, prepared)
        said = (decision.rule, decision.approval)
        if self._said.get(record.id) != said:
            self._said[record.id] = said
            self._log.say("notice" if "notify" in decision.actions else "info", decision.reason, **self._fields(record))
        pause = self.pausing.current()
        if pause is not None:
            self.work.put_off(record, pause.text())
            prepared = self.prepared(record)
        elif "hold" not in decision.actions or record.approval_asked_by or prepared != "none":
            self.work.go_on(record, PREPARE, self.records)
            prepared = self.prepared(record)
            decision = self.approvals.decide(record, self.own_name, prepared)
        self.approvals.consider(record, decision, self.own_name, prepared)

    def _start(self, record: Record) -> None:
        self.approvals.explained.pop(record.id, None)
        if not record.concerned:
            return
        if self.work.runs_for(record, PREPARE):
            if self.settings.when_started == "stop":
                self.work.stop(record, "the event has started", PREPARE)
            elif self.pausing.current() is None:
                self.work.go_on(record, PREPARE, self.records)
            else:
                self.work.keep_time(record, PREPARE)
            return
        self.work.go_on(record, EMERGENCY if record.first_status == "Started" else STARTED, self.records)

    def _recover(self, record: Record) -> bool:
        """Whether nothing is left to do for an event that is over."""
        if not record.concerned:
            return True
        if self.work.runs_for(record, PREPARE, EMERGENCY, STARTED):
            self.work.stop(record, "the event is over", PREPARE, EMERGENCY, STARTED)
            return False
        return self.work.go_on(record, RECOVER, self.records)

    def _close(self, record: Record) -> None:
        record.closed_at = self._clock.now()
        self.records.remove(record)
        self.approvals.forget(record)
        self.approvals.explained.pop(record.id, None)
        self._said.pop(record.id, None)
        if self._is_kept(record):
            failed = [step.hook for step in record.of_stage(RECOVER) if step.state not in ("ok", "skipped")]
            text = "recovered" if not failed else "recovered, but for %s" % ", ".join(failed)
            self._keep(record, "closed", "%s; outcome: %s" % (text, record.outcome), "notice" if not failed else "error")
            self._journal.prune(self.settings.history_events)

    def _keep(self, record: Record, what: str, detail: str, level: str) -> bool:
        """Note something in an event's timeline, say it, and save the record; False where the journal could not take it."""
        if len(record.timeline) < LONGEST_TIMELINE or record.closed_at is not None:
            record.timeline.append(Entry(self._clock.now(), what, displayable(detail)))
        self._log.say(level, "%s: %s" % (what, detail), **self._fields(record))
        return self._journal.save(record) if self._is_kept(record) else True

    def _is_kept(self, record: Record) -> bool:
        """Events of other VMs are not worth a line of the journal, unless this VM approved them."""
        return record.concerned or bool(record.approval)

    def _described(self, record: Record) -> str:
        event = record.event
        who = "this VM" if record.concerned else "other VMs"
        when = "it has started" if event.status == "Started" else "its start is not known"
        if event.not_before is not None:
            when = "not before %s, in %.0f s" % (as_utc_text(event.not_before), event.seconds_left(self._clock.now()))
        return "%s by %s hits %s (%s); %s" % (event.event_type, event.source or "somebody", who, ", ".join(event.resources), when)

    def _fields(self, record: Record) -> dict[str, object]:
        return {
            "azure_event_id": record.event.event_id,
            "azure_event_type": record.event.event_type,
            "azure_event_status": record.event.status,
        }


def _shown(event: ScheduledEvent, name: str) -> str:
    value = event.as_dict()["duration_seconds" if name == "duration" else name]
    return ", ".join(value) if isinstance(value, list) else str(value)
