# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The answers of a recording on one time line. Pure."""

from __future__ import annotations

import bisect
import calendar
import email.utils
import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..protocol.request_target import EVENTS, parse_target
from ..recording.lines import INSTANCE, POLL, Answer, Begin
from ..recording.reader import Recording

# probes that ask the same as a poll, at other times or with other conditions
_NOT_REPEATED = ("rate-events", "rate-instance", "if-none-match")
# seconds: times in a recording are rounded
_ROUNDING = 0.002


class Moment(NamedTuple):
    """An answer, and when its request was sent: seconds from the first answer of the recording."""

    position: float
    answer: Answer


class Track:
    """Answers to one question, in the order of their positions."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        self._moments = sorted(moments, key=lambda each: each.position)
        self._positions = [each.position for each in self._moments]

    def at(self, position: float) -> Moment:
        """Return the last answer that was asked for at ``position`` or before it, else the first one."""
        return self._moments[max(0, bisect.bisect_right(self._positions, position + _ROUNDING) - 1)]


class Timeline:
    """All answers of a recording that has at least one.

    Attributes:
        length: seconds from the first answer to the end of the recording.
        began: Unix time of the first answer, by the clock of the service.
        server: the header Server of the recording.
        conditional: True if the recording does not show that If-None-Match is ignored.
    """

    def __init__(self, recording: Recording) -> None:
        moments = _positions(recording)
        if not moments:
            raise ValueError("the recording has no answers")
        by_question: dict[tuple[str, str, str | None, bool], list[Moment]] = {}
        by_version: dict[str, list[Moment]] = {}
        instances = []
        for each in moments:
            answer = each.answer
            if answer.purpose == POLL:
                by_version.setdefault(parse_target(answer.path).version or "", []).append(each)
            elif answer.purpose == INSTANCE:
                instances.append(each)
            elif answer.purpose not in _NOT_REPEATED and answer.status:
                by_question.setdefault(question(answer.method, answer.path, answer.sent), []).append(each)
        self._by_question = {key: Track(found) for key, found in by_question.items()}
        self._versions = {key: Track(found) for key, found in by_version.items()}
        good = [each for each in instances if each.answer.status == 200]
        self._instance = Track(good) if good else None
        last = moments[-1]
        self.length = last.position + last.answer.seconds + 1.0
        self.began = moments[0].answer.time + _skew(recording.answers)
        self.server = next((each.headers["server"] for each in recording.answers if "server" in each.headers), "IMDS")
        self.conditional = not any(each.purpose == "if-none-match" and each.status == 200 for each in recording.answers)

    def probed(self, method: str, path: str, headers: Mapping[str, str], position: float) -> Answer | None:
        """Return the recorded answer to an unusual request.

        A document is not returned: it is that of another moment.
        """
        track = self._by_question.get(question(method, path, headers))
        found = track.at(position).answer if track is not None else None
        is_document = found is not None and found.status == 200 and parse_target(path).route == EVENTS
        return None if is_document else found

    def document(self, version: str, position: float) -> Moment | None:
        """Return the answer to a poll: that of ``version``, else that of the newest recorded version."""
        if not self._versions:
            return None
        return self._versions.get(version, self._versions[max(self._versions)]).at(position)

    def instance(self, position: float) -> Answer | None:
        """Return the last good answer of instance metadata."""
        return self._instance.at(position).answer if self._instance is not None else None


def question(method: str, path: str, headers: Mapping[str, str]) -> tuple[str, str, str | None, bool]:
    """Return the key of a request: method, path, and the headers that IMDS looks at."""
    given = {name.lower(): value for name, value in headers.items()}
    return (method, path, given.get("metadata"), "x-forwarded-for" in given)


def _positions(recording: Recording) -> list[Moment]:
    """Return the answers with their positions.

    Within a run the monotonic clock counts, because the wall clock may be set.
    """
    found: list[Moment] = []
    start = base = 0.0
    first_of_run, began = True, 0.0
    for line in recording.lines:
        if isinstance(line, Begin):
            first_of_run = True
        elif isinstance(line, Answer):
            # the line with the start of the run may be damaged
            if first_of_run or line.monotonic < base:
                began = began or line.time
                last = found[-1].position + found[-1].answer.seconds if found else 0.0
                start, base, first_of_run = max(last, line.time - began), line.monotonic, False
            found.append(Moment(start + line.monotonic - base, line))
    return found


def moment(text: object) -> float | None:
    """Return the Unix time of a date in the form of RFC 1123, or None."""
    if not isinstance(text, str):
        return None
    try:
        parsed = email.utils.parsedate_tz(text)
        return float(calendar.timegm((*parsed[:6], 0, 0, 0)) - (parsed[9] or 0)) if parsed else None
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def _skew(answers: Iterable[Answer]) -> float:
    """Return the seconds that the clock of the service is ahead of that of the VM."""
    # Date has whole seconds: half a second is lost on average
    found = [date + 0.5 - each.time for each in answers if (date := moment(each.headers.get("date"))) is not None]
    return statistics.median(found) if found else 0.0
