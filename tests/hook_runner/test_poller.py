# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the polling thread delivers: news always, the rest only to whoever is attentive."""

from __future__ import annotations

import queue
from typing import Any, Optional, Union

from azure_scheduled_events.document import EventDocument, parse_document
from azure_scheduled_events.errors import ImdsError, ImdsRefused
from hook_runner.poller import Answered, Looked, Missed, Named, Nameless, News, Poller

NOTHING = parse_document('{"DocumentIncarnation":1,"Events":[]}')
EVENT = parse_document('{"DocumentIncarnation":2,"Events":[{"EventId":"A","EventStatus":"Scheduled","EventType":"Reboot","Resources":["vm1"]}]}')
SICK = ImdsRefused("answered 503", "http://127.0.0.1", 503)
PATIENCE = 30


class Script:
    """Stands for the client: gives the answers that the test puts into `answers`, and waits where there is none."""

    requests_sent = 0

    def __init__(self) -> None:
        self.answers: "queue.Queue[Union[EventDocument, ImdsError]]" = queue.Queue()
        self.names: "queue.Queue[Union[dict[str, Any], ImdsError]]" = queue.Queue()
        self.approved: list[list[str]] = []

    def events(self, within: Optional[float] = None) -> EventDocument:
        answer = self.answers.get()
        if isinstance(answer, ImdsError):
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
    poller = Poller(script, 0.01, 60, news.put, needs_name)  # type: ignore[arg-type]
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


def test_approvals_are_sent_between_polls_and_answered_one_by_one() -> None:
    script = Script()
    poller, news = started(script)
    poller.approve(1, "A")
    poller.approve(2, "sick")
    script.answers.put(NOTHING)
    script.answers.put(NOTHING)
    told = [news.get(timeout=PATIENCE) for _answer in range(3)]
    answered = [each for each in told if isinstance(each, Answered)]
    assert [(each.record_id, each.error) for each in answered] == [(1, None), (2, SICK)] and script.approved == [["A"], ["sick"]]


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
