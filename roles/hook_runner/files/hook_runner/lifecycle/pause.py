# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Pauses by an operator: the daemon polls and records, but begins no prepare hook and approves nothing."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.options import parse_seconds
from azure_scheduled_events.printable import printable
from azure_scheduled_events.timestamps import as_utc_text, parse_time
from hook_runner.clock import ServerClock
from hook_runner.log import NOTICE
from hook_runner.record_store import RecordStore

log = logging.getLogger(__name__)

# its name in the store
NOTE = "pause"


class Pause(NamedTuple):
    """One pause.

    Attributes:
        since: aware UTC time at which it began.
        until: aware UTC time at which it ends by itself, or None.
        by: the operator.
        reason: why, or "".
    """

    since: datetime
    until: datetime | None
    by: str
    reason: str

    def as_data(self) -> dict[str, str | None]:
        """Return the pause as JSON values for `status` and the store; times are ISO 8601 in UTC."""
        until = None if self.until is None else as_utc_text(self.until)
        return {"since": as_utc_text(self.since), "until": until, "by": self.by, "reason": self.reason or None}

    def text(self) -> str:
        """Return the pause as one sentence."""
        return described(self.as_data())


def described(data: Mapping[str, str | None]) -> str:
    """Return the value of `Pause.as_data` as one sentence."""
    until = f"until {data['until']}" if data["until"] else "until it is resumed"
    return "the daemon is paused by {} {}{}".format(
        data["by"], until, ": {}".format(data["reason"]) if data["reason"] else ""
    )


class Pausing:
    """The current pause, which the store keeps across restarts.

    It ends by the server's clock. The log gets a line when a pause begins and when it ends.
    """

    def __init__(self, store: RecordStore, clock: ServerClock) -> None:
        self._store, self._clock = store, clock

    def current(self) -> Pause | None:
        """Return the pause that is in force, or None."""
        pause = self._noted()
        return None if pause is None or (pause.until is not None and self._clock.now() >= pause.until) else pause

    def begin(self, by: str, until: datetime | None, reason: str) -> Pause | None:
        """Begin a pause, which replaces an earlier one; None if `until` has passed."""
        now = self._clock.now()
        if until is not None and until <= now:
            return None
        pause = Pause(now, until, printable(by), printable(reason))
        self._store.note(NOTE, pause.as_data())
        log.warning("%s; no prepare hook begins, and nothing is approved", pause.text())
        return pause

    def end(self, by: str) -> bool:
        """End the pause; False if there is none."""
        was = self.current()
        if was is not None:
            self._store.note(NOTE, None)
            log.log(NOTICE, "the pause since %s is over: %s resumed", as_utc_text(was.since), by)
        return was is not None

    def expire(self) -> None:
        """Remove a pause whose time has passed. Call it only once the clock has the server's time."""
        pause = self._noted()
        if pause is not None and self.current() is None:
            self._store.note(NOTE, None)
            log.log(NOTICE, "the pause since %s is over: its time has passed", as_utc_text(pause.since))

    def seconds_left(self) -> float | None:
        """Return the seconds until the pause ends by itself; None if it does not."""
        pause = self.current()
        return None if pause is None or pause.until is None else (pause.until - self._clock.now()).total_seconds()

    def asked(self, question: Mapping[str, Any], who: str) -> dict[str, Any]:
        """Pause or resume as a client of the control socket requests; returns accepted, text and paused.

        1. A request to resume is accepted, also if there is no pause.
        2. A pause whose end has passed is not accepted, and changes nothing.
        3. Any other pause begins and replaces the earlier one.
        4. If the change cannot be written, the text says what a restart does.
        """
        if question.get("ask") == "resume":
            text = "resumed" if self.end(who) else "the daemon is not paused"
            if not self._store.write():
                text += "; records cannot be written: a restart may pause the daemon again"
            return {"accepted": True, "text": text, "paused": None}
        until = _end(question, self._clock.now())
        pause = self.begin(who, until, str(question.get("reason") or ""))
        if pause is None:
            text = "%s has passed; nothing is paused" % (until and as_utc_text(until))
            return {"accepted": False, "text": text, "paused": self._data()}
        text = f"{pause.text()}; no prepare hook begins, and nothing is approved"
        if not self._store.write():
            text += "; records cannot be written: a restart forgets the pause"
        return {"accepted": True, "text": text, "paused": self._data()}

    def _data(self) -> dict[str, str | None] | None:
        pause = self.current()
        return None if pause is None else pause.as_data()

    def _noted(self) -> Pause | None:
        data = self._store.noted(NOTE, dict)
        return None if data is None else _pause(data)


def moment(text: str) -> dict[str, Any]:
    """Return the value of `--until`: ``seconds`` from now, or ``until`` as ISO 8601.

    The text is ``30m``, ``2h`` or ``5d``; or ISO 8601 (UTC where it has no zone). Raises ValueError for any
    other.
    """
    time = parse_time(text)
    if time is not None:
        return {"until": as_utc_text(time)}
    try:
        seconds = parse_seconds(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise ValueError(f"expected a time such as 30m, 2h or 2026-11-21T18:00:00Z, not {text!r}")
    return {"seconds": seconds}


def _end(question: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the end of the pause that a request asks for; None for a pause that does not end by itself.

    1. A text in ``until`` is an ISO time. One that cannot be read counts as now, and the pause does not begin.
    2. A number in ``seconds`` counts from now, up to the end of the calendar.
    3. A request without one of these has no end.
    """
    until, seconds = question.get("until"), question.get("seconds")
    if isinstance(until, str):
        return parse_time(until) or now
    if isinstance(seconds, (int, float)):
        try:
            return now + timedelta(seconds=seconds)
        except (OverflowError, ValueError):
            return datetime.max.replace(tzinfo=now.tzinfo)
    return None


def _pause(data: Mapping[str, Any]) -> Pause | None:
    """Return the stored pause; None if it cannot be read."""
    try:
        since = parse_time(data["since"])
        until = None if data["until"] is None else parse_time(data["until"])
        if since is None or (until is None and data["until"] is not None):
            return None
        return Pause(since, until, str(data["by"]), str(data["reason"] or ""))
    except (ValueError, KeyError, TypeError):
        return None
