# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Observe the transitions of the daemon's real engine through every short course of an event."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError, ImdsRefused, ImdsUnreachable
from azure_scheduled_events.policy import Policy
from hook_runner.clock import ServerClock
from hook_runner.config.settings import DEFAULTS
from hook_runner.hooks.runs import HookRuns
from hook_runner.journal.journal import Journal
from hook_runner.lifecycle.engine import Engine
from hook_runner.log import Log
from hook_runner.records import EventRecord
from tools.pictures.states.transitions import Transitions

BEGIN = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
US, OTHER = "web1", "web2"
# status, Resources and type of an event in one document; None: the document does not list it
Listing = tuple[str, tuple[str, ...], str] | None
LISTINGS: tuple[Listing, ...] = (
    None,
    ("Scheduled", (OTHER,), "Reboot"),
    ("Started", (OTHER,), "Reboot"),
    ("Scheduled", (US,), "Reboot"),
    ("Started", (US,), "Reboot"),
)
# documents: the longest way to a new transition has an event of this VM that ends and is listed again
DOCUMENTS = 5
# names of answers to an approval -> the error that the poller reports; None: IMDS accepted it
ANSWERS: dict[str, ImdsError | None] = {
    "accepted": None,
    "400": ImdsRefused("IMDS answered 400", status=400, retryable=False),
    "lost": ImdsUnreachable("no answer"),
}
WITHHELD = "withheld"
LISTED: Listing = ("Scheduled", (US,), "Reboot")
# inputs other than answers -> the event in the next document
AFTER: dict[str, Listing] = {
    "another type": ("Scheduled", (US,), "Redeploy"),
    "start": ("Started", (US,), "Reboot"),
    "end": None,
}
ENDS = ("start", "end")
INPUTS, STEPS = (*ANSWERS, WITHHELD, *AFTER), 4
NOT_LISTED, NOT_REQUESTED = "not listed", "not requested"
ENDED = "event started or over"


class Watcher(io.StringIO):
    """A stream of the daemon's log; each line about an event reaches a function at once."""

    def __init__(self, noted: Callable[[str, str], None]) -> None:
        super().__init__()
        self._noted = noted

    def write(self, text: str) -> int:
        """Pass (EventId, keyword of the timeline) of a line on."""
        line = re.match(r"\w+ +(.*) AZURE_EVENT_ID=(\S+)", text)
        if line is not None:
            self._noted(line[2], line[1].partition(":")[0])
        return len(text)


class EngineRun:
    """The real engine without hooks, on a clock that `document` moves by one second.

    Args:
        folder: gets the journal.
        state_of: returns the state of a record that is observed.
        begin: the state before the first document with an event.
        transitions: gets what is observed.
        policy: of the engine.
    """

    def __init__(
        self,
        folder: Path,
        state_of: Callable[[EventRecord], str],
        begin: str,
        transitions: Transitions,
        policy: Policy,
    ) -> None:
        self._now = 0.0
        self._state_of, self._begin, self._transitions = state_of, begin, transitions
        self._records: dict[str, EventRecord] = {}
        self._states: dict[str, str] = {}
        self.sent: list[EventRecord] = []
        log = Log("info", Watcher(self._noted))
        self._clock = ServerClock(lambda: self._now, lambda: BEGIN + timedelta(seconds=self._now))
        journal = Journal.open(str(folder / "journal.db"), lambda text: None, lambda: self._now)
        runs = HookRuns(str(folder), {}, 0.0, lambda: self._now)
        settings = DEFAULTS._replace(resource_name=US, policy=policy, journal=str(folder / "journal.db"))
        self.engine = Engine(
            settings, {}, journal, runs, self._clock, lambda record, event: self.sent.append(record), log
        )
        self.close = journal.close

    def document(self, listed: Sequence[tuple[str, Listing]]) -> None:
        """Hand in a document one second after the previous one."""
        self._now += 1.0
        date = BEGIN + timedelta(seconds=self._now)
        self._clock.synchronise(date, self._now)
        events = tuple(_event(key, *listing) for key, listing in listed if listing is not None)
        self.engine.observe(EventDocument(None, events, server_time=date))
        self._sample()

    def answer(self, record: EventRecord, name: str) -> None:
        """Answer an approval that was sent."""
        if name == WITHHELD:
            self.engine.approval_withheld(record.id)
        else:
            self.engine.approval_answered(record.id, ANSWERS[name])

    def _noted(self, event_id: str, keyword: str) -> None:
        """Take the state of the event's record at an entry of its timeline."""
        if event_id not in self._records:
            # a new record is the last one
            self._records[event_id] = next(
                record for record in reversed(self.engine.records) if record.event.event_id == event_id
            )
        self._moved(event_id, self._state_of(self._records[event_id]), keyword)

    def _sample(self) -> None:
        """Find the transitions that have no entry in a timeline."""
        for event_id, record in self._records.items():
            self._moved(event_id, self._state_of(record), "")

    def _moved(self, event_id: str, after: str, cause: str) -> None:
        before = self._states.get(event_id, self._begin)
        if before != after:
            self._transitions.add(before, after, cause)
            self._states[event_id] = after


def phases() -> Transitions:
    """Return the transitions between the phases of a record, through all courses of DOCUMENTS documents."""
    found = Transitions()
    courses = {f"E{number}": course for number, course in enumerate(itertools.product(LISTINGS, repeat=DOCUMENTS))}
    with _run(lambda record: record.phase, NOT_LISTED, found, Policy.preset("observe")) as run:
        for step in range(DOCUMENTS):
            run.document([(key, course[step]) for key, course in courses.items()])
        # the events that are still listed end
        for _absence in range(3):
            run.document([])
    return found


def approvals() -> Transitions:
    """Return the transitions of an approval that a rule requests, through all courses of STEPS steps."""
    found = Transitions()
    courses = {
        f"E{number}": course for number, course in enumerate(filter(_ends, itertools.product(INPUTS, repeat=STEPS)))
    }
    policy = Policy.from_rules([{"name": "all", "when": {}, "approve": "now"}])
    with _run(_approval_of, NOT_REQUESTED, found, policy) as run:
        run.document([(key, LISTED) for key in courses])
        for step in range(STEPS):
            outstanding, run.sent = run.sent, []
            for record in outstanding:
                given = courses[record.event.event_id][step]
                if given in (*ANSWERS, WITHHELD):
                    run.answer(record, given)
                else:
                    run.sent.append(record)
            run.document([(key, AFTER.get(course[step], LISTED)) for key, course in courses.items()])
    return found


def _approval_of(record: EventRecord) -> str:
    has_ended = record.seen_started or record.gone_at is not None
    return ENDED if has_ended else record.approval or NOT_REQUESTED


def _ends(course: Sequence[str]) -> bool:
    """Return True if the event stays started, or stays away, once it has."""
    return all(before not in ENDS or before == after for before, after in itertools.pairwise(course))


@contextlib.contextmanager
def _run(
    state_of: Callable[[EventRecord], str], begin: str, transitions: Transitions, policy: Policy
) -> Iterator[EngineRun]:
    # in memory where the system has a place for that: each step of the engine is written to the journal
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        run = EngineRun(Path(folder), state_of, begin, transitions, policy)
        try:
            yield run
        finally:
            run.close()


def _event(key: str, status: str, resources: tuple[str, ...], kind: str) -> ScheduledEvent:
    not_before = None if status == "Started" else BEGIN + timedelta(minutes=15)
    return ScheduledEvent(key, kind, status, resources, "VirtualMachine", not_before, "", "Platform", None)
