# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The answer of a recording to a request. Pure."""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence

from ..header_text import is_header_name, is_header_value
from ..protocol.instance_lookup import element
from ..protocol.request_target import INSTANCE as INSTANCE_ROUTE
from ..protocol.request_target import parse_target
from ..protocol.responses import Reply, error, method_not_allowed
from ..recording.lines import INSTANCE, Answer
from ..recording.probes import IF_NONE_MATCH, RATE_EVENTS, RATE_INSTANCE

_METHODS = ("GET", "HEAD")
# probes that ask the same as a poll, under other conditions
_NOT_SERVED = (RATE_EVENTS, RATE_INSTANCE, IF_NONE_MATCH)
# headers that aiohttp makes itself
_MADE = frozenset(("content-length", "transfer-encoding", "connection", "keep-alive", "content-type"))
_Question = tuple[str, str, str, bool]


class Answers:
    """Answers requests from the answers of a recording that are in the order of their times."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._began = answers[0].time
        self._by_question: dict[_Question, list[Answer]] = {}
        self._instance: list[Answer] = []
        for each in answers:
            if not each.status or each.purpose in _NOT_SERVED:
                continue
            self._by_question.setdefault(_question(each.method, each.path, each.sent), []).append(each)
            if each.purpose == INSTANCE and each.status == 200:
                self._instance.append(each)

    def answer(self, method: str, path: str, headers: Mapping[str, str], seconds: float) -> Reply:
        """Return the last answer to this request ``seconds`` after the first one of the recording, else the next."""
        found = self._by_question.get(_question(method, path, headers))
        if found is not None:
            return _reply(self._at(found, seconds))
        if method not in _METHODS:
            return method_not_allowed(_METHODS)
        target = parse_target(path)
        if target.route == INSTANCE_ROUTE and self._instance:
            return _part(self._at(self._instance, seconds), target.below, target.query.get("format", "json"))
        return error(404, "Not found. The recording has no answer to this request")

    def _at(self, answers: Sequence[Answer], seconds: float) -> Answer:
        times = [each.time for each in answers]
        return answers[max(0, bisect.bisect_right(times, self._began + seconds) - 1)]


def _question(method: str, path: str, headers: Mapping[str, str]) -> _Question:
    """Return what IMDS looks at: method, path, and two headers."""
    given = {name.lower(): value for name, value in headers.items()}
    return (method, path, given.get("metadata", "").lower(), "x-forwarded-for" in given)


def _reply(answer: Answer) -> Reply:
    # the recording may be of another origin, and its headers arbitrary
    headers = {name: value for name, value in answer.headers.items() if is_header_name(name) and is_header_value(value)}
    kept = tuple((name, value) for name, value in headers.items() if name.lower() not in _MADE)
    return Reply(answer.status, answer.body, headers.get("content-type", ""), kept)


def _part(answer: Answer, path: Sequence[str], output_format: str) -> Reply:
    """Return an element of the instance metadata that ``answer`` has."""
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = {}
    return element(document, path, output_format.lower())
