# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verdicts about statements, and the registry of the functions that reach them."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Callable, NamedTuple

from ..recording.lines import Answer
from .evidence import Evidence


class Outcome(enum.Enum):
    """The evidence of a recording about a statement."""

    CONFIRMS = "confirms"
    CONTRADICTS = "contradicts"
    OPEN = "open"


class Verdict(NamedTuple):
    """The outcome, the numbers of the lines that show it, and a remark."""

    outcome: Outcome
    lines: tuple[int, ...] = ()
    remark: str = ""


class Statement(NamedTuple):
    """A statement of the reference that a recording can settle."""

    number: str
    confidence: str
    summary: str
    check: Callable[[Evidence], Verdict]


STATEMENTS: dict[str, Statement] = {}


def statement(number: str, confidence: str) -> Callable[[Callable[[Evidence], Verdict]], Callable[[Evidence], Verdict]]:
    """Register the decorated function for a statement; the first line of its docstring is the summary."""

    def register(check: Callable[[Evidence], Verdict]) -> Callable[[Evidence], Verdict]:
        if number in STATEMENTS:
            raise ValueError(f"statement {number} is registered twice")
        summary = (check.__doc__ or "").splitlines()[0].rstrip(".")
        STATEMENTS[number] = Statement(number, confidence, summary, check)
        return check

    return register


def confirms(lines: Iterable[int], remark: str = "") -> Verdict:
    """Return the verdict that the lines confirm the statement."""
    return Verdict(Outcome.CONFIRMS, tuple(lines), remark)


def contradicts(lines: Iterable[int], remark: str = "") -> Verdict:
    """Return the verdict that the lines contradict the statement."""
    return Verdict(Outcome.CONTRADICTS, tuple(lines), remark)


def is_open(remark: str, lines: Iterable[int] = ()) -> Verdict:
    """Return the verdict that the recording does not settle the statement."""
    return Verdict(Outcome.OPEN, tuple(lines), remark)


def judged(good: Iterable[int], bad: Iterable[int], missing: str, remark: str = "") -> Verdict:
    """Return the verdict about a statement that every case has to meet.

    Args:
        good: lines of cases that meet it.
        bad: lines of cases that do not.
        missing: what the recording lacks if there are no cases.
        remark: about the bad cases.
    """
    good, bad = tuple(good), tuple(bad)
    if bad:
        return contradicts(bad, remark)
    return confirms(good) if good else is_open(missing)


def seen(lines: Iterable[int], missing: str) -> Verdict:
    """Return the verdict about something that may occur: it confirms, and its absence leaves it open."""
    lines = tuple(lines)
    return confirms(lines) if lines else is_open(missing)


# answers that say nothing about the request: IMDS is busy, is being updated, or fails
_PASSING = frozenset((408, 410, 429, 500, 502, 503, 504))


def by_status(answers: Iterable[Answer], expected: Callable[[Answer], bool], name: str) -> Verdict:
    """Return the verdict about the answers to a probe.

    Args:
        answers: those of the probe.
        expected: returns True for an answer that the statement describes.
        name: of the probe, for the remark.
    """
    answers = [each for each in answers if not each.error]
    good = [each.line for each in answers if expected(each)]
    bad = [each for each in answers if not expected(each) and each.status not in _PASSING]
    if bad:
        return contradicts([each.line for each in bad], f"status {bad[0].status}")
    return confirms(good) if good else is_open(f"needs a usable answer to the probe {name}")
