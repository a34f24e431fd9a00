# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the polling thread delivers: news always, the rest only to whoever is attentive."""

from __future__ import annotations

import queue
import threading
from typing import Any, Optional, Union

import pytest
from azure_scheduled_events.document import EventDocument, parse_document
from azure_scheduled_events.errors import ImdsError, ImdsRefused
from hook_runner.poller import Answered, Looked, Missed, Named, Nameless, News, Poller, Withheld

NOTHING = parse_document('{"DocumentIncarnation":1,"Events":[]}')
TWO = parse_document(
    """{"DocumentIncarnation":2,"Events":[
    {"EventId":"A","EventStatus":"Scheduled","EventType":"Reboot","Resources":["vm1"]},
    {"EventId":"sick","EventStatus":"Scheduled","EventType":"Reboot","Resources":["vm1"]}]}"""
)
EVENT = TWO._replace(events=TWO.events[:1])
GROWN = EVENT._replace(events=(EVENT.events[0]._replace(resources=("vm1", "vm2")),))
SICK = ImdsRefused("answered 503", "http://127.0.0.1", 503)
PATIENCE = 30


class Script:
    """Stands for the client: gives the answers that the test puts into `answers`, and waits where there is none."""

    requests_sent = 0

    def __init__(self) -> None:
        self.answers: "queue.Queue[Union[EventDocument, Exception]]" = queue.Queue()
        self.names: "queue.Queue[Union[dict[str, Any], ImdsError]]" = queue.Queue()
        self.approved: list[list[str]] = []
        self.asked = threading.Semaphore(0)

    def events(self, within: Optional[float] = None) -> EventDocument:
        self.asked.release()
        answer = self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def instance(self, within: Optional[float] = None) -> dict[str, Any]:
        answer = self.names.get()
        if isinstance(answer, ImdsError):
            raise answer
        return answer

    def approve(self, ids: list[str], within: Optional[float] = None) -> None:
        self.approved.append(ids)
        if ids == ["sick"]:
            raise SICK


def started(script: Script, needs_name: bool = False) -> tuple[Poller, "queue.Queue[News]"]:
    news: "queue.Queue[News]" = queue.Queue()
    poller = Poller(script, 0.01, 60, 60, news.put, needs_name)  # type: ignore[arg-type]
    poller.attentive = False
    poller.start()
    return poller, news


def test_only_news_is_delivered_unless_somebody_is_attentive() -> None:
    script = Script()
    poller, news = started(script)
    for answer in (NOTHING, NOTHING, EVENT, EVENT, NOTHING):
        script.answers.put(answer)
    told = [news.get(timeout=PATIENCE) for _document in range(3)]
    assert [isinstance(each, Looked) and len(each.document.events) for each in told] == [0, 1, 0]
    poller.attentive = True
    for _document in range(2):
        script.answers.put(NOTHING)
        assert isinstance(news.get(timeout=PATIENCE), Looked)
    assert news.empty() and not poller.is_stuck()


def test_the_first_good_document_after_an_error_is_news() -> None:
    script = Script()
    _poller, news = started(script)
    for answer in (EVENT, SICK, EVENT):
        script.answers.put(answer)
    assert [type(news.get(timeout=PATIENCE)) for _answer in range(3)] == [Looked, Missed, Looked]


def test_approvals_are_sent_one_by_one_with_a_look_after_each() -> None:
    script = Script()
    poller, news = started(script)
    script.answers.put(TWO)
    assert isinstance(news.get(timeout=PATIENCE), Looked)
    poller.attentive = True
    for number, event in enumerate(TWO.events):
        poller.approve(number, event)
    for _look in range(3):
        script.answers.put(TWO)
    told = [news.get(timeout=PATIENCE) for _answer in range(5)]
    answered = [(each.record_id, each.error) for each in told if isinstance(each, Answered)]
    assert answered == [(0, None), (1, SICK)] and script.approved == [["A"], ["sick"]]
    assert sum(isinstance(each, Looked) for each in told) == 3 and isinstance(told[-1], Looked)


@pytest.mark.parametrize("meanwhile, says", [(GROWN, Looked), (NOTHING, Looked), (SICK, Missed)])
def test_an_approval_is_withheld_when_the_event_is_not_what_was_judged(meanwhile: Any, says: type) -> None:
    script = Script()
    poller, news = started(script)
    script.answers.put(EVENT)
    assert isinstance(news.get(timeout=PATIENCE), Looked)
    # while it looks again: so that it is this look, and no later one, that the approval comes after
    for _look in range(2):
        assert script.asked.acquire(timeout=PATIENCE)
    poller.approve(1, EVENT.events[0])
    script.answers.put(meanwhile)
    assert [type(news.get(timeout=PATIENCE)) for _news in range(2)] == [says, Withheld]
    assert script.approved == []


def test_with_an_event_known_trouble_does_not_make_the_pauses_longer_than_ten_seconds() -> None:
    poller, _news = started(Script())
    poller._last = EVENT
    poller._missed(SICK)
    assert poller._knows_events()


def test_a_program_error_in_a_look_is_told_and_ends_nothing() -> None:
    script = Script()
    poller, news = started(script)
    script.answers.put(RuntimeError("odd"))
    missed = news.get(timeout=PATIENCE)
    assert isinstance(missed, Missed) and "odd" in str(missed.error)
    script.answers.put(NOTHING)
    assert isinstance(news.get(timeout=PATIENCE), Looked) and not poller.is_stuck()


def test_the_name_is_asked_for_until_it_is_told_and_then_the_document_is_news_again() -> None:
    script = Script()
    script.names.put({"compute": {}})
    _poller, news = started(script, needs_name=True)
    script.answers.put(EVENT)
    assert [type(news.get(timeout=PATIENCE)) for _answer in range(2)] == [Nameless, Looked]
    script.names.put({"compute": {"name": "vm1"}})
    # the name is asked for again after some seconds, whatever polls bring meanwhile
    told: list[News] = []
    while not any(isinstance(each, Named) for each in told):
        script.answers.put(EVENT)
        try:
            told.append(news.get(timeout=0.05))
        except queue.Empty:
            pass
    script.answers.put(EVENT)
    assert isinstance(news.get(timeout=PATIENCE), Looked)
