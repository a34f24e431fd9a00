# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The events of the poller: changes always, unchanged documents only on request."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from azure_scheduled_events.document import EventDocument, parse_document
from azure_scheduled_events.errors import ImdsError, ImdsRefused, ImdsUnreachable
from hook_runner.clock import ServerClock
from hook_runner.config.settings import DEFAULTS
from hook_runner.imds_health import ImdsHealth
from hook_runner.service.inbox import Message
from hook_runner.service.poller import Poller

NOTHING = parse_document('{"DocumentIncarnation":1,"Events":[]}')
TWO = parse_document(
    """{"DocumentIncarnation":2,"Events":[
    {"EventId":"A","EventStatus":"Scheduled","EventType":"Reboot","Resources":["vm1"]},
    {"EventId":"sick","EventStatus":"Scheduled","EventType":"Reboot","Resources":["vm1"]}]}"""
)
EVENT = TWO._replace(events=TWO.events[:1])
GROWN = EVENT._replace(events=(EVENT.events[0]._replace(resources=("vm1", "vm2")),))
SICK = ImdsRefused("answered 503", status=503)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
Says = Callable[[float], EventDocument | Exception]


class Report(NamedTuple):
    """A message of the poller: the method of `Runner` that it calls, and its arguments."""

    what: str
    arguments: tuple[Any, ...]


class Reports:
    """The poller's inbox, which keeps what the messages call. A date sets the clock, as the runner does."""

    def __init__(self, clock: ServerClock) -> None:
        self._reports: list[Report] = []
        self._clock = clock

    def put(self, message: Message) -> None:
        message(self)  # type: ignore[arg-type]  # has each method that a message calls

    def __getattr__(self, what: str) -> Callable[..., None]:
        def keep(*arguments: Any) -> None:
            if what == "document_received":
                for date, at in arguments[1]:
                    self._clock.synchronise(date, at)
            self._reports.append(Report(what, arguments))

        return keep

    def all(self) -> list[Report]:
        """Return the reports since the last call."""
        found, self._reports = self._reports, []
        return found


class Moved:
    """A poller without its thread, on a clock that only pauses and slow answers move.

    The client's answers come from `says`, and those about the VM from `names`; `asked` and `asked_for_name` have the
    times of its requests, `approved` the ids. `host_is_off` is the error of the host's own clock in seconds.
    """

    def __init__(
        self, says: Says, takes: float = 0.0, names: Sequence[dict[str, Any]] = (), host_is_off: float = 0.0
    ) -> None:
        self.now = 0.0
        self._names = iter(names)
        self.asked_for_name: list[tuple[float, float | None]] = []
        self.says, self.takes = says, takes
        self.requests_sent = 0
        self.versions_of_a_poll = 1
        self.asked: list[float] = []
        self.approved: list[str] = []
        clock = ServerClock(lambda: self.now, lambda: NOON + timedelta(seconds=self.now + host_is_off))
        self.news = Reports(clock)
        settings = DEFAULTS if names else DEFAULTS._replace(resource_name="vm1")
        self.health = ImdsHealth()
        self.poller = Poller(self, settings, clock, self.health, self.news, self.sleep)  # type: ignore[arg-type]
        self.poller.deliver_unchanged(False)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def events(self, within: float | None = None) -> EventDocument:
        self.requests_sent += 1
        self.asked.append(self.now)
        answer = self.says(self.now)
        if isinstance(answer, Exception):
            self.now += self.takes
            raise answer
        return answer

    def approve(self, event_id: str, within: float | None = None) -> None:
        self.approved.append(event_id)
        if event_id == "sick":
            raise SICK

    def instance(self, within: float | None = None) -> dict[str, Any]:
        self.asked_for_name.append((self.now, within))
        return next(self._names)

    def poll(self) -> None:
        pause = self.poller.poll_once()  # which moves the clock, too
        self.now += pause

    def until(self, end: float) -> Moved:
        while self.now < end:
            self.poll()
        return self

    def polls(self, count: int) -> list[Report]:
        """Poll so many times, and return the news."""
        for _poll in range(count):
            self.poll()
        return self.news.all()

    def pauses(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.asked, self.asked[1:])]


def test_unchanged_document_is_delivered_only_on_request() -> None:
    answers = iter((NOTHING, NOTHING, EVENT, EVENT, *[NOTHING] * 3))
    moved = Moved(lambda now: next(answers))
    assert [(each.what, len(each.arguments[0].events)) for each in moved.polls(5)] == [
        ("document_received", 0),
        ("document_received", 1),
        ("document_received", 0),
    ]
    moved.poller.deliver_unchanged(True)
    assert [each.what for each in moved.polls(2)] == ["document_received"] * 2 and not moved.poller.is_stuck()


def test_approvals_are_sent_one_by_one_with_a_poll_after_each() -> None:
    moved = Moved(lambda now: TWO)
    moved.polls(1)
    moved.poller.deliver_unchanged(True)
    for event in TWO.events:
        moved.poller.approve(event)
    news = moved.polls(2)
    assert [each.what for each in news] == ["approval_answered", "document_received"] * 2
    assert [each.arguments for each in news[::2]] == [("a", None), ("sick", SICK)]
    assert moved.approved == ["A", "sick"] and moved.pauses()[-1] < 0.5


@pytest.mark.parametrize(
    "newer, messages",
    [(GROWN, ["document_received"]), (NOTHING, ["document_received"]), (SICK, ["poll_failed"]), (EVENT, [])],
)
def test_approval_is_withheld_if_the_event_changed_or_it_was_withdrawn(newer: Any, messages: list[str]) -> None:
    def says(_now: float) -> Any:
        if len(moved.asked) == 2:
            # while it polls again
            moved.poller.approve(EVENT.events[0])
            if newer is EVENT:
                moved.poller.withdraw()
        return EVENT if len(moved.asked) == 1 else newer

    moved = Moved(says)
    expected = ["document_received", *messages, "approval_withheld"]
    assert [each.what for each in moved.polls(3)][: len(expected)] == expected
    assert moved.approved == []


def test_the_first_good_document_after_an_error_is_news() -> None:
    moved = Moved(lambda now: SICK if 0 < now < 1.5 else EVENT).until(10)
    assert [each.what for each in moved.news.all()] == ["document_received", "poll_failed", "document_received"]


@pytest.mark.parametrize("within", [26.0, 2.0], ids=["no-name-stored", "name-stored"])
def test_name_is_requested_until_it_is_known_and_then_the_document_is_delivered_again(within: float) -> None:
    moved = Moved(lambda now: EVENT, names=[{"compute": {}}, {"compute": {"name": "vm1"}}])
    moved.poller.knows_name = within == 2.0
    moved.until(20)
    said = ["name_unavailable", "document_received", "name_resolved", "document_received"]
    assert [each.what for each in moved.news.all()] == said
    assert moved.asked_for_name == [(0, 2.0), (5, within)]


def error(status: int, **more: Any) -> ImdsRefused:
    return ImdsRefused(f"answered {status}", status=status, **more)


TRANSIENT: list[ImdsError] = [
    ImdsUnreachable("refused"),
    error(404),
    error(408),
    error(410),
    error(429),
    error(500),
    error(503),
    error(302),
]


@pytest.mark.parametrize("takes", [0.0, 3.0])
@pytest.mark.parametrize("trouble", TRANSIENT, ids=str)
def test_an_event_is_seen_within_five_seconds_of_the_end_of_an_outage(trouble: ImdsError, takes: float) -> None:
    """A Preempt gives 30 seconds. An answer may take 3 seconds to fail: that is the limit for a connection."""
    for number in range(20):
        over = 600 + number / 4
        moved = Moved(lambda now: EVENT if now >= over else (NOTHING if now < 5 else trouble), takes=takes).until(620)
        good = [each.arguments for each in moved.news.all() if each.what == "document_received"]
        seen = next(dates[-1][1] for document, dates in good if document.events)
        assert 0 <= seen - over <= 5
        assert max(moved.pauses()) <= 5 and min(moved.pauses()) >= 1


@pytest.mark.parametrize("status", [400, 401, 403, 405])
def test_refused_requests_are_made_seldom_only_after_several(status: int) -> None:
    """One refusal must not cost a Preempt its time."""
    refused = error(status, retryable=False)
    once = Moved(lambda now: refused if 0 < now < 1.5 else NOTHING).until(10)
    assert 1 <= once.pauses()[1] <= 2
    always = Moved(lambda now: refused).until(300).pauses()
    assert max(always[:3]) <= 5 and {round(pause, 6) for pause in always[3:]} == {30}


def test_whatever_happens_no_second_has_more_than_five_requests() -> None:
    """T53: IMDS refuses more."""
    chance = random.Random(8)
    documents = [document._replace(server_time=NOON) for document in (NOTHING, EVENT, TWO)]
    choices: list[EventDocument | Exception] = [*documents, *TRANSIENT, error(400, retryable=False)]
    moved = Moved(lambda now: chance.choice(choices), host_is_off=3600).until(2000)
    assert all(moved.asked[number + 5] - moved.asked[number] >= 1 for number in range(len(moved.asked) - 5))


def dated(now: float, ahead: float = 0.0) -> EventDocument:
    return NOTHING._replace(server_time=(NOON + timedelta(seconds=now + ahead)).replace(microsecond=0))


def test_health_has_the_time_of_a_document_that_is_not_delivered() -> None:
    moved = Moved(lambda now: EVENT).until(30)
    assert len(moved.news.all()) == 1 and moved.health.last_good == NOON + timedelta(seconds=moved.asked[-1])


def test_doubted_date_is_requested_again_before_the_first_document_is_delivered() -> None:
    moved = Moved(lambda now: dated(now, 3600)).until(20)
    (received,) = moved.news.all()
    _document, dates = received.arguments
    assert len(dates) == 3 and moved.asked[2] < 1
    assert [date for date, _at in dates] == [NOON + timedelta(seconds=3600)] * 3


def test_an_error_after_a_doubted_date_does_not_keep_the_document_back() -> None:
    moved = Moved(lambda now: SICK if len(moved.asked) > 1 else dated(now), host_is_off=3600)
    moved.poller.poll_once()
    (received,) = moved.news.all()
    assert received.what == "document_received" and len(received.arguments[1]) == 1


@pytest.mark.parametrize("ahead, delivered", [(1, [0]), (3, [0, 3]), (3600, [0, 3600, 3600, 3600])])
def test_a_date_that_moves_against_the_clock_is_delivered_until_it_counts(ahead: int, delivered: list[int]) -> None:
    moved = Moved(lambda now: dated(now, ahead if now > 9.5 else 0)).until(30)
    dates = [date for each in moved.news.all() for date in each.arguments[1]]
    assert [round((date - NOON).total_seconds() - at) for date, at in dates] == delivered
