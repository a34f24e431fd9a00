# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of transitions, starts and times of events (docs/reference/scheduled-events.md 2.1, 2.2, 2.4, 5)."""

from __future__ import annotations

from .evidence import Document, Evidence, Life, id_of, resources_of
from .verdict import Verdict, contradicts, is_open, judged, seen, statement

_NOTICE = {"Freeze": 900.0, "Reboot": 900.0, "Redeploy": 600.0, "Preempt": 30.0, "Terminate": 300.0}
# clients saw less than the least notice (docs/reference/scheduled-events.md 2.4)
_SEEN = {"Freeze": 319.0, "Reboot": 810.0, "Redeploy": 540.0, "Preempt": float("-inf"), "Terminate": 270.0}
_WEEK = 7 * 86400.0
# clients saw 14 min 9 s of 15 min
_SHARE = 0.9
# seconds between two documents that show a transition well enough
_CLOSE = 60.0


def _new(evidence: Evidence, status: str) -> list[Life]:
    """Return the events that appeared with ``status`` between two documents."""
    return [life for life in evidence.lives if life.first.status == status and life.gap <= _CLOSE]


def _notice(life: Life) -> float | None:
    """Return the seconds from the first sighting to NotBefore, or None."""
    not_before = life.first.not_before
    return None if not_before is None else not_before - life.first.document.time


def _notices(evidence: Evidence) -> list[tuple[Life, float]]:
    return [
        (life, notice)
        for life in _new(evidence, "scheduled")
        if life.type in _NOTICE and (notice := _notice(life)) is not None
    ]


def _source(life: Life) -> str:
    """Return EventSource in lower case."""
    return str(life.first.event.get("EventSource", "")).lower()


def _rises(one: Document | None, two: Document | None) -> bool | None:
    """Return True if DocumentIncarnation rises, False if it stays, None if it cannot be known.

    It may go back, and begins again after a day (docs/reference/scheduled-events.md 2.5).
    """
    if one is None or two is None or two.incarnation < one.incarnation or two.time - one.time >= 86400:
        return None
    return two.incarnation > one.incarnation


def _line(life: Life) -> int:
    return life.first.document.line


@statement("2.1 (1)", "D")
def appears(evidence: Evidence) -> Verdict:
    """An event appears as Scheduled with NotBefore in the future, and DocumentIncarnation rises."""
    good: list[int] = []
    bad: list[int] = []
    for life in _new(evidence, "scheduled"):
        rises = _rises(life.before, life.first.document)
        not_before = life.first.not_before
        is_future = not_before is not None and not_before > life.first.document.time - life.gap - 1
        if rises is False or (not_before is not None and not is_future):
            bad.append(_line(life))
        elif rises and is_future:
            good.append(_line(life))
    return judged(good, bad, "needs the appearance of an event")


@statement("2.1 (2)", "D")
def starts(evidence: Evidence) -> Verdict:
    """A Scheduled event becomes Started under the same id, and DocumentIncarnation rises."""
    good: list[int] = []
    bad: list[int] = []
    for life in evidence.lives:
        for one, two in life.steps():
            rises = _rises(one.document, two.document)
            if (one.status, two.status) == ("scheduled", "started") and rises is not None:
                (good if rises else bad).append(two.document.line)
    return judged(good, bad, "needs the start of an event", "DocumentIncarnation did not rise")


@statement("2.1 (3)", "D")
def is_cancelled(evidence: Evidence) -> Verdict:
    """A Scheduled event may be cancelled: it vanishes before NotBefore and was not Started."""
    cancelled = []
    for life in evidence.lives:
        last = life.sightings[-1]
        if life.after is None or life.started() is not None or last.not_before is None:
            continue
        # a poll may miss Started: then DocumentIncarnation rises by more than 1
        is_close = life.after.time - last.document.time <= _CLOSE
        is_one_step = life.after.incarnation == last.document.incarnation + 1
        if life.after.time < last.not_before - _CLOSE and is_close and is_one_step:
            cancelled.append(life.after.line)
    return seen(cancelled, "no event was cancelled")


@statement("2.1 (4)", "D")
def hardware_failure(evidence: Evidence) -> Verdict:
    """After a hardware failure an event begins as Started."""
    return seen([_line(life) for life in _began_started(evidence, "platform")], "no platform event began as Started")


@statement("2.1 (4a)", "D?")
def type_after_failure(evidence: Evidence) -> Verdict:
    """An event of a hardware failure is a Reboot or a Redeploy."""
    lives = _began_started(evidence, "platform")
    bad = [_line(life) for life in lives if life.type not in ("Reboot", "Redeploy")]
    return judged([_line(life) for life in lives], bad, "no platform event began as Started", "another type")


@statement("2.1 (4b)", "D")
def automatic_approval(evidence: Evidence) -> Verdict:
    """After an automatic approval an event of a user begins as Started."""
    return seen([_line(life) for life in _began_started(evidence, "user")], "no user event began as Started")


def _began_started(evidence: Evidence, source: str) -> list[Life]:
    # a poll may miss Scheduled: then DocumentIncarnation rises by more than 1
    lives = [life for life in _new(evidence, "started") if life.gap <= 10 and life.before is not None]
    return [
        life
        for life in lives
        if _source(life) == source
        and life.before is not None
        and life.first.document.incarnation == life.before.incarnation + 1
    ]


@statement("2.1 (5)", "D")
def ends(evidence: Evidence) -> Verdict:
    """A Started event vanishes at its end, and DocumentIncarnation rises."""
    good: list[int] = []
    bad: list[int] = []
    for life in evidence.lives:
        rises = _rises(life.sightings[-1].document, life.after)
        if life.after is not None and life.sightings[-1].status == "started" and rises is not None:
            (good if rises else bad).append(life.after.line)
    return judged(good, bad, "needs the end of a Started event", "DocumentIncarnation did not rise")


@statement("2.1 (6)", "D")
def never_back(evidence: Evidence) -> Verdict:
    """No event becomes Scheduled again, and a finished event does not return."""
    bad = [
        two.document.line
        for life in evidence.lives
        for one, two in life.steps()
        if (one.status, two.status) == ("started", "scheduled")
    ]
    known: set[str] = set()
    for life in evidence.lives:
        event_id = id_of(life.first.event)
        bad += [_line(life)] if event_id in known else []
        if life.started() is not None:
            known.add(event_id)
    good = [life.after.line for life in evidence.lives if life.after is not None and life.started() is not None]
    return judged(good, bad, "needs a whole event")


@statement("2.1 (7)", "D")
def end_has_no_status(evidence: Evidence) -> Verdict:
    """The document does not show whether an event was cancelled or finished."""
    bad = [each.document.line for each in evidence.sightings if each.status in ("completed", "canceled", "cancelled")]
    return judged([life.after.line for life in evidence.lives if life.after], bad, "needs the end of an event")


@statement("2.2.1", "D")
def starts_at_not_before(evidence: Evidence) -> Verdict:
    """An event starts after an approval, or when NotBefore is reached."""
    good, late = [], []
    for life in evidence.lives:
        for one in life.sightings:
            passed = one.not_before is not None and one.document.time - one.not_before
            if one.status == "scheduled" and passed and passed > 300:
                late.append(one.document.line)
        started, last = life.started(), life.sightings[0].not_before
        for one, two in life.steps():
            last = one.not_before if one.status == "scheduled" else last
            is_close = last is not None and one.document.time >= last - 2 * _CLOSE
            if two is started and last is not None and is_close and two.document.time >= last - 1:
                good.append(two.document.line)
    return judged(good, late, "needs an event that starts at NotBefore", "Scheduled five minutes after NotBefore")


@statement("2.2.8", "D, A")
def terminate_alone(evidence: Evidence) -> Verdict:
    """Terminate: each instance has its own event."""
    cases = [each for each in evidence.sightings if each.event.get("EventType") == "Terminate"]
    bad = [each.document.line for each in cases if len(resources_of(each.event)) != 1]
    return judged([each.document.line for each in cases], bad, "needs a Terminate", "several resources")


@statement("2.4", "D")
def least_notice(evidence: Evidence) -> Verdict:
    """The least notice: Freeze and Reboot 15 min, Redeploy 10 min, Preempt 30 s, Terminate 5 min."""
    notices = _notices(evidence)
    bad = [(life, notice) for life, notice in notices if notice < _SEEN[life.type] - life.gap]
    good = [_line(life) for life, notice in notices if notice >= _NOTICE[life.type] * _SHARE]
    remark = f"{bad[0][0].type} {bad[0][1]:.0f} s" if bad else ""
    missing = "needs the appearance of an event that is seen at once"
    return judged(good, [_line(life) for life, _notice in bad], missing, remark)


@statement("2.4.1", "O")
def shorter_notice_seen(evidence: Evidence) -> Verdict:
    """Clients may see less than the least notice."""
    less = [_line(life) for life, notice in _notices(evidence) if notice < _NOTICE[life.type]]
    return seen(less, "no notice was shorter")


@statement("2.4.2", "O")
def notice_is_not_long(evidence: Evidence) -> Verdict:
    """Ordinary maintenance is rarely announced much earlier than the least notice."""
    types = ("Freeze", "Reboot", "Redeploy")
    notices = [(life, each) for life, each in _notices(evidence) if life.type in types and _source(life) != "user"]
    usual = [_line(life) for life, notice in notices if notice <= _NOTICE[life.type] + 300]
    return seen(usual, "needs the appearance of ordinary maintenance")


@statement("2.4.4", "D")
def predicted_failure(evidence: Evidence) -> Verdict:
    """A predicted hardware failure is announced days ahead, up to seven."""
    notices = _notices(evidence)
    bad = [_line(life) for life, notice in notices if notice > _WEEK + 3600]
    return judged(
        [_line(life) for life, notice in notices if notice > 86400], bad, "no event was announced days ahead",
        "more than seven days",
    )  # fmt: skip


@statement("2.4.5", "D")
def started_for_ten_minutes(evidence: Evidence) -> Verdict:
    """Typical maintenance is removed 10 minutes after the start."""
    good: list[int] = []
    for life in evidence.lives:
        started = life.started()
        is_maintenance = life.type in ("Freeze", "Reboot", "Redeploy") and _source(life) == "platform"
        if is_maintenance and started is not None and started is not life.first and life.after is not None:
            seconds = life.after.time - started.document.time
            good += [life.after.line] if 240 <= seconds <= 1200 else []
    return seen(good, "no maintenance ended 4 to 20 minutes after its start")


@statement("2.4.6", "O")
def usual_durations(evidence: Evidence) -> Verdict:
    """DurationInSeconds of Reboot and Redeploy is -1, of Freeze seconds."""
    good: list[int] = []
    for life in evidence.lives:
        duration = life.first.event.get("DurationInSeconds")
        if isinstance(duration, int) and life.type in ("Freeze", "Reboot", "Redeploy"):
            is_usual = 0 <= duration <= 60 if life.type == "Freeze" else duration == -1
            good += [_line(life)] if is_usual else []
    return seen(good, "no maintenance had a usual duration")


@statement("2.4.8", "D, O")
def reboot_that_freezes(evidence: Evidence) -> Verdict:
    """A Reboot may turn out to be a freeze: the recorder goes on during it."""
    name = evidence.name.lower()
    survived = []
    for life in evidence.lives:
        started = life.started()
        resources = [each.lower() for each in resources_of(life.first.event)]
        is_here = life.type == "Reboot" and bool(name) and name in resources
        if is_here and started and life.after and started.document.run == life.after.run:
            survived.append(life.after.line)
    return seen(survived, "needs a Reboot of this VM that the recorder survives")


@statement("5.5", "D")
def terminate_notice(evidence: Evidence) -> Verdict:
    """Terminate has a notice of 5 to 15 minutes."""
    notices = [(life, notice) for life, notice in _notices(evidence) if life.type == "Terminate"]
    bad = [_line(life) for life, notice in notices if not 300 * _SHARE - life.gap <= notice <= 960]
    return judged([_line(life) for life, _notice in notices], bad, "needs a Terminate", "another notice")


@statement("5.6", "D, O")
def preempt_notice(evidence: Evidence) -> Verdict:
    """A Spot eviction has a Preempt about 30 seconds ahead."""
    notices = [(life, notice) for life, notice in _notices(evidence) if life.type == "Preempt"]
    bad = [_line(life) for life, notice in notices if notice > 120]
    return judged([_line(life) for life, _notice in notices], bad, "needs a Preempt", "more than two minutes")


@statement("5.8", "A")
def terminate_source(evidence: Evidence) -> Verdict:
    """EventSource of Terminate is User for a deletion by hand and Platform for autoscale."""
    lives = [life for life in evidence.lives if life.type == "Terminate"]
    sources = sorted({str(life.first.event.get("EventSource")) for life in lives})
    if not lives:
        return is_open("needs a Terminate")
    if not {each.lower() for each in sources} <= {"user", "platform"}:
        return contradicts([_line(life) for life in lives], f"EventSource {', '.join(sources)[:60]}")
    return is_open(f"EventSource {', '.join(sources)}; compare it with the cause", [_line(life) for life in lives])
