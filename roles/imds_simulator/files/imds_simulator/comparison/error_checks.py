# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of errors, rate limit and latency (docs/reference/scheduled-events.md 1.6 to 1.8), and enabling (4.1)."""

from __future__ import annotations

from ..recording.lines import Answer
from ..recording.probes import RATE_EVENTS, RATE_INSTANCE
from .evidence import Evidence, decoded
from .verdict import Verdict, by_status, confirms, contradicts, is_open, judged, seen, statement

# a first answer that takes so many seconds comes from a service that is being enabled
_SLOW = 5.0
_DAY = 86400.0
_UPDATE = 70.0


def _is_error(answer: Answer) -> bool:
    data = decoded(answer)
    return isinstance(data, dict) and isinstance(data.get("error"), str) and bool(data["error"])


def has_old_wording(answer: Answer) -> bool:
    """Return True for the error of about 2022, which has no list of versions."""
    text = str(decoded(answer)["error"]) if _is_error(answer) else ""
    return answer.status == 400 and "api-version was not specified" in text


@statement("1.6.1", "D, O")
def header_error(evidence: Evidence) -> Verdict:
    """The error for a missing header says that the metadata header is not specified."""

    def expected(answer: Answer) -> bool:
        text = str(decoded(answer)["error"]) if _is_error(answer) else ""
        return answer.status == 400 and "Required metadata header not specified" in text

    return by_status(evidence.probe("no-header"), expected, "no-header")


@statement("1.6.2", "O, A")
def version_error(evidence: Evidence) -> Verdict:
    """The error for a missing version lists the three newest versions of scheduledevents."""

    def expected(answer: Answer) -> bool:
        if answer.status != 400 or not _is_error(answer):
            return False
        newest = decoded(answer).get("newest-versions")
        return isinstance(newest, list) and sorted(map(str, newest)) == ["2019-04-01", "2019-08-01", "2020-07-01"]

    probes = [each for each in evidence.probe("no-version", "unknown-version") if not has_old_wording(each)]
    return by_status(probes, expected, "no-version")


@statement("1.6.3", "D, A")
def forwarded_error(evidence: Evidence) -> Verdict:
    """The error for X-Forwarded-For is 400."""
    return by_status(evidence.probe("forwarded"), lambda each: each.status == 400, "forwarded")


@statement("1.6.4", "D")
def leaf_error(evidence: Evidence) -> Verdict:
    """A leaf of instance metadata without format=text is 400."""
    return by_status(
        evidence.probe("leaf-as-json"), lambda each: each.status == 400 and _is_error(each), "leaf-as-json"
    )


@statement("1.6.5", "D")
def unknown_path(evidence: Evidence) -> Verdict:
    """An unknown path or element is 404."""
    probes = evidence.probe("unknown-path", "unknown-element")
    return by_status(probes, lambda each: each.status == 404 and _is_error(each), "unknown-path")


@statement("1.6.6", "D, A")
def other_method(evidence: Evidence) -> Verdict:
    """HEAD is 405."""
    return by_status(evidence.probe("head"), lambda each: each.status == 405, "head")


@statement("1.6.7", "D")
def updating(evidence: Evidence) -> Verdict:
    """While IMDS is being updated the answer is 404, or 410 for up to 70 seconds."""
    runs: list[list[Answer]] = [[]]
    for each in evidence.polls:
        # the recorder may have missed an end of an update
        if runs[-1] and (each.status != 410 or each.time - runs[-1][-1].time > 120):
            runs.append([])
        if each.status == 410:
            runs[-1].append(each)
    long = [run for run in runs if run and run[-1].time - run[0].time > _UPDATE]
    if long:
        return contradicts([each.line for each in long[0]], f"{long[0][-1].time - long[0][0].time:.0f} s")
    return seen([each.line for each in evidence.polls if each.status in (404, 410)], "IMDS was not updated")


@statement("1.6.8", "D, body A")
def too_many(evidence: Evidence) -> Verdict:
    """Too many requests are answered by 429 with an error in the general shape."""
    answers = [each for each in evidence.answers if each.status == 429]
    bad = [each.line for each in answers if not _is_error(each)]
    return judged([each.line for each in answers], bad, "needs an answer 429 (--probe-rate)", "another body")


@statement("1.6.9", "D, O")
def internal_error(evidence: Evidence) -> Verdict:
    """Internal errors are 500, 503 or 504."""
    return seen([each.line for each in evidence.answers if each.status in (500, 503, 504)], "there was no such answer")


@statement("1.6.13", "O, A")
def path_metadata(evidence: Evidence) -> Verdict:
    """The path /metadata is 400 without a version, and 404 with one."""
    expected = {"root": 400, "root-version": 404}
    return by_status(evidence.probe(*expected), lambda each: each.status == expected[each.purpose], "root")


@statement("1.7.1", "D")
def rate_limit(evidence: Evidence) -> Verdict:
    """More than about 5 requests in a second are answered by 429."""
    answers = [each for each in evidence.probe(RATE_EVENTS) if not each.error]
    answers = [each for each in answers if evidence.run(each) == evidence.run(answers[0])]
    limited = [each.line for each in answers if each.status == 429]
    if limited:
        return confirms(limited)
    quick = len(answers) > 7 and answers[-1].monotonic - answers[0].monotonic < 1.0
    if quick and all(each.status == 200 for each in answers):
        return contradicts([each.line for each in answers], f"{len(answers)} requests in a second")
    return is_open("needs --probe-rate, and quick answers")


@statement("1.7.3", "D, A")
def one_budget(evidence: Evidence) -> Verdict:
    """All routes share one budget of requests."""
    limited = [each for each in evidence.probe(RATE_EVENTS) if each.status == 429]
    if not limited:
        return is_open("needs --probe-rate, and answers 429")
    after = [each for each in evidence.probe(RATE_INSTANCE) if 0 <= each.time - limited[-1].time < 0.5]
    good = [each.line for each in after if each.status == 429]
    free = [each.line for each in after if each.status == 200]
    # one request may be allowed again by then
    return judged(good, free if len(free) > 2 else (), "needs quick answers", "instance is free")


def _first_answers(evidence: Evidence) -> list[Answer]:
    """Return the first poll of the recording, and each one after a day without a request."""
    firsts, before = [], None
    for each in evidence.polls:
        if before is None or each.time - before >= _DAY:
            firsts.append(each)
        before = each.time
    return firsts


def _is_enabling(first: Answer) -> bool:
    """Return True if the first answer is slow or empty; a missing answer may have any cause."""
    return first.status == 200 and not first.removed and (first.seconds >= _SLOW or not first.body)


@statement("1.8.1", "D")
def first_answer(evidence: Evidence) -> Verdict:
    """The first answer may take up to two minutes."""
    firsts = _first_answers(evidence)
    bad = [each.line for each in firsts if each.seconds > 120]
    good = [each.line for each in firsts if _SLOW <= each.seconds <= 120 and each.status == 200]
    return judged(good, bad, "the first answer was quick; the service was enabled, perhaps", "longer than two minutes")


@statement("1.8.4", "O")
def slow_answers(evidence: Evidence) -> Verdict:
    """Answers may take longer than a second."""
    slow = [each.line for each in evidence.polls[1:] if each.status == 200 and each.seconds > 1]
    return seen(slow, "all answers after the first were quicker")


@statement("4.1.1", "D")
def enabled_by_request(evidence: Evidence) -> Verdict:
    """The first request for events enables the service."""
    first = evidence.polls[:1]
    slow = first and _is_enabling(first[0])
    after = [each for each in evidence.documents if each.line != first[0].line] if first else []
    if not slow or not after:
        return is_open("needs a first answer that is slow or empty, and a document after it")
    return confirms([first[0].line, after[0].line])


@statement("4.1.2", "D")
def delays_of_enabling(evidence: Evidence) -> Verdict:
    """The first answer may take two minutes, and events may be missing for five minutes."""
    first = evidence.polls[0] if evidence.polls else None
    if first is not None and first.seconds > 120:
        return contradicts([first.line], f"{first.seconds:.0f} s")
    if first is None or not _is_enabling(first):
        return is_open("needs a first answer that is slow or empty")
    return confirms([first.line])


@statement("4.1.3", "D")
def disabled_after_a_day(evidence: Evidence) -> Verdict:
    """After 24 hours without a request the service is disabled."""
    pairs = [(one, two) for one, two in evidence.pairs() if two.time - one.time >= _DAY]
    slow = {each.line for each in _first_answers(evidence)[1:] if each.seconds >= _SLOW or not each.body}
    disabled = [two.line for one, two in pairs if two.incarnation < one.incarnation or two.line in slow]
    return seen(disabled, "needs a pause of 24 h, and a slow answer or a smaller DocumentIncarnation after it")


@statement("4.1.5", "O")
def user_events_wait(evidence: Evidence) -> Verdict:
    """A restart or redeploy that a user asks for waits about 15 minutes."""
    cases = [
        life
        for life in evidence.lives
        if str(life.first.event.get("EventSource", "")).lower() == "user"
        and life.type in ("Reboot", "Redeploy")
        and life.first.status == "scheduled"
        and life.first.not_before is not None
        and life.gap <= 60
    ]
    waits = [(life.first.document.line, (life.first.not_before or 0) - life.first.document.time) for life in cases]
    bad = [line for line, wait in waits if not 480 <= wait <= 1200]
    return judged([line for line, _wait in waits], bad, "needs a restart by a user", "another notice")


def _resets(evidence: Evidence) -> Verdict:
    pairs = [(one, two) for one, two in evidence.pairs() if two.time - one.time >= _DAY]
    return seen(
        [two.line for one, two in pairs if two.incarnation < one.incarnation],
        "needs a pause of 24 h and a smaller DocumentIncarnation after it",
    )


@statement("2.5.5", "O")
def incarnation_begins_again(evidence: Evidence) -> Verdict:
    """DocumentIncarnation begins again after the service was disabled."""
    return _resets(evidence)


@statement("4.1.7", "O")
def enabling_resets(evidence: Evidence) -> Verdict:
    """Enabling again resets DocumentIncarnation."""
    return _resets(evidence)
