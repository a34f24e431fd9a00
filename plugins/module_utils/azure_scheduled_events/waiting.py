# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Polls until a predicate holds for the events, such as that one has started or that they are over."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Mapping, NamedTuple

from .document import EventDocument, ScheduledEvent
from .errors import ImdsError
from .selection import Selection
from .session import ImdsSession
from .tracking import GONE_AFTER, UNLISTED, Observation, Tracker

# seconds for a poll after the end of the time, and for one that is not part of a wait
_CONFIRMING_TIMEOUT = 1.0
_ONLY_TIMEOUT = 10.0


def selected(seen: Observation, selection: Selection, own_name: str | None) -> list[ScheduledEvent]:
    """Return the selected events that the last document lists."""
    events = [sighting.event for sighting in seen.events.values() if sighting.listed]
    return [event for event in events if selection.matches(event, own_name)]


def present(seen: Observation, selection: Selection, own_name: str | None) -> bool:
    """Return True if a selected event is listed."""
    return bool(selected(seen, selection, own_name))


def has_status(status: str, seen: Observation, selection: Selection, own_name: str | None) -> bool:
    """Return True if a selected event with that status is listed."""
    return any(event.status == status for event in selected(seen, selection, own_name))


def surely_absent(seen: Observation, selection: Selection, own_name: str | None) -> bool:
    """Return True if every event is gone that is selected or may be.

    An event of ``event_ids`` is, whatever its other values. The Tracker has to know ``expected(selection)``.
    """
    expected_keys = {event.key for event in expected(selection)}
    return seen.document.complete and not any(
        key in expected_keys or selection.may_match(sighting.event, sighting.readable, own_name)
        for key, sighting in seen.events.items()
    )


def expected(selection: Selection) -> list[ScheduledEvent]:
    """Return the events that a Tracker has to know in order to confirm that there are no selected ones."""
    return [UNLISTED._replace(event_id=event_id) for event_id in selection.event_ids or [""]]


_REACHED: Mapping[str, Callable[[Observation, Selection, str | None], bool]] = {
    "present": present,
    "scheduled": partial(has_status, "Scheduled"),
    "started": partial(has_status, "Started"),
    "absent": surely_absent,
}
STATES = tuple(_REACHED)


class WaitResult(NamedTuple):
    """The result of a wait.

    Attributes:
        reached: whether the predicate held.
        seen: the events after the last good document, or None where there was none.
        elapsed: duration of the wait in seconds.
        errors: number of failed polls.
        last_error: the latest error, or None where there was none.
    """

    reached: bool
    seen: Observation | None
    elapsed: float
    errors: int
    last_error: ImdsError | None

    @property
    def document(self) -> EventDocument | None:
        """The last good document, or None where there was none."""
        return None if self.seen is None else self.seen.document


def wait_for(
    session: ImdsSession,
    name_required: bool,
    tracker: Tracker,
    holds: Callable[[Observation], bool],
    timeout: float,
    confirms: Callable[[Observation], bool] = lambda seen: seen.doubt,
) -> WaitResult:
    """Return the result of polls at the pacer's interval until a predicate holds or the time is up; at least one.

    Errors of IMDS do not end the wait and never count as an empty document; the retry table slows the polls down.

    Args:
        session: with IMDS; it sets the interval and the delays.
        name_required: whether the name of this VM is requested first while it is missing.
        tracker: gets each good document.
        holds: the predicate, called once for each good document.
        timeout: seconds for the wait.
        confirms: returns True if the end of a doubt may end the wait. The next poll then comes when it can end the
            doubt, and one such poll, of a second at most, may come after the timeout.

    Raises:
        ImdsError: an ImdsRefused, if IMDS supports none of the api-versions.
    """
    pacer = session.pacer
    started = pacer.clock()
    seen: Observation | None = None
    errors = 0
    last_error: ImdsError | None = None
    confirming = is_late = False
    while True:
        polled = pacer.clock()
        within = _CONFIRMING_TIMEOUT if is_late else started + timeout - polled
        try:
            may_hold = pacer.error is None and not confirming
            seen = tracker.observe(session.poll(name_required, within, may_hold))
        except ImdsError as error:
            if error.supported_versions and not error.retryable:
                raise
            last_error = error
            errors += 1
        else:
            if holds(seen):
                return WaitResult(True, seen, pacer.clock() - started, errors, last_error)
        now = pacer.clock()
        left = started + timeout - now
        confirming = pacer.error is None and seen is not None and confirms(seen)
        if is_late or (left <= 0 and not confirming):
            return WaitResult(False, seen, now - started, errors, last_error)
        if confirming:
            # a sooner document could not end the doubt
            pause = GONE_AFTER
            is_late = pause > left
        else:
            # the last poll is at the end of the time, so that no event of the last second is missed
            pause = min(polled + pacer.delay(seen is not None and bool(seen.document.events)) - now, left)
        pacer.sleep(max(0.0, pause))


class EventWait:
    """A wait for a state of the selected events.

    Args:
        state: one of STATES; "scheduled" and "started" need an event with that status, "absent" needs that all are
            gone.
        selection: the events to wait for.
        session: the session with IMDS.
    """

    def __init__(self, state: str, selection: Selection, session: ImdsSession) -> None:
        self._state = state
        self._selection = selection
        self._session = session
        self._tracker = Tracker(expected(selection))

    def wait(self, timeout: float) -> WaitResult:
        """Wait until the state is reached or can no longer be; raise ImdsRefused for an unsupported api-version."""
        return wait_for(
            self._session,
            self._selection.needs_own_name,
            self._tracker,
            lambda seen: bool(self._end(seen)),
            timeout,
            self._confirms,
        )

    def poll_once(self) -> WaitResult:
        """Return the result of a single poll."""
        clock = self._session.pacer.clock
        started = clock()
        try:
            document = self._session.poll(self._selection.needs_own_name, _ONLY_TIMEOUT, may_hold=False)
        except ImdsError as error:
            return WaitResult(False, None, clock() - started, 1, error)
        return WaitResult(True, self._tracker.observe(document), clock() - started, 0, None)

    def outcome(self, waited: WaitResult) -> str:
        """Return how a wait ended: "reached", "timeout", or "gone" if every event of ``event_ids`` is gone."""
        return "timeout" if waited.seen is None else self._end(waited.seen) or "timeout"

    def result(self, waited: WaitResult) -> dict[str, Any]:
        """Return the selected events and the errors as plain JSON values."""
        seen, name = waited.seen, self._session.resource_name
        picked = selected(seen, self._selection, name) if seen is not None else []
        result = {
            "events": [event.as_dict() for event in picked],
            "elapsed": round(waited.elapsed, 2),
            "incarnation": seen.document.incarnation if seen is not None else None,
            "resource_name": name,
            "imds_errors": waited.errors,
        }
        if waited.last_error is not None:
            result["imds_error"] = waited.last_error.as_dict()
        return result

    def failure(self, waited: WaitResult) -> str:
        """Return why a wait did not reach the state: one sentence for the operator."""
        if waited.reached:
            return (
                f"the events are gone and were not seen {self._state}:"
                " they were cancelled, or were over between two polls"
            )
        if waited.seen is None:
            return f"nothing is known of the events after {waited.elapsed:.0f} seconds: {waited.last_error}"
        if self._state == "absent":
            return f"the events are not over after {waited.elapsed:.0f} seconds"
        return f"no event is {self._state} after {waited.elapsed:.0f} seconds"

    def _confirms(self, seen: Observation) -> bool:
        if self._state != "absent" and not self._selection.event_ids:
            return False
        return seen.doubt and not self._selection.pick(seen.document, self._session.resource_name)

    def _end(self, seen: Observation) -> str:
        """Return "reached", "gone" if every event of ``event_ids`` is gone, or "" if the wait goes on."""
        if _REACHED[self._state](seen, self._selection, self._session.resource_name):
            return "reached"
        expects = bool(self._selection.event_ids)
        return "gone" if expects and surely_absent(seen, self._selection, self._session.resource_name) else ""
