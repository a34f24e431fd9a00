# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Polls until the events are in a state, a predicate holds for a good document, or the time is up."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from .changes import ABSENCES_NEEDED
from .document import EventDocument
from .errors import ImdsError, ImdsRefused
from .pacing import Pacer
from .selection import ANY, Selection
from .session import ANSWER_TIMEOUT, ImdsSession

STATES = ("present", "scheduled", "started", "absent")
# seconds before a poll that confirms the one before, however long the interval is
_CONFIRMING_PAUSE = 1.0
# seconds for the confirming poll when the time for the wait is up
_CONFIRMING_TIMEOUT = 1.0


class WaitResult(NamedTuple):
    """The result of a wait.

    Attributes:
        reached: whether the predicate held.
        document: the last good document, or None where there was none.
        elapsed: duration of the wait in seconds.
        errors: number of failed polls.
        last_error: the latest error, or None where there was none.
    """

    reached: bool
    document: EventDocument | None
    elapsed: float
    errors: int
    last_error: ImdsError | None


def wait_for(
    pacer: Pacer,
    poll: Callable[[float], EventDocument],
    holds: Callable[[EventDocument], bool],
    timeout: float,
    confirms: Callable[[], bool] = lambda: False,
) -> WaitResult:
    """Return the result of polls at the pacer's interval until a predicate holds or the time is up; at least one.

    Errors of IMDS do not end the wait and never count as an empty document; the retry table slows the polls down.

    Args:
        pacer: sets the interval and the delays.
        poll: returns a good document through the pacer, within so many seconds, or raises ImdsError.
        holds: the predicate.
        timeout: seconds for the wait.
        confirms: returns True if one more good document may end the wait. The next poll then comes within a second,
            and one such poll, of a second at most, may come after the timeout.

    Raises:
        ImdsError: an ImdsRefused, if IMDS supports none of the api-versions.
    """
    started = pacer.clock()
    document: EventDocument | None = None
    errors = 0
    last_error: ImdsError | None = None
    shortest = 0.1
    while True:
        polled = pacer.clock()
        try:
            document = poll(max(started + timeout - polled, shortest))
        except ImdsError as error:
            if isinstance(error, ImdsRefused) and error.supported_versions and not error.retryable:
                raise
            last_error = error
            errors += 1
        else:
            if holds(document):
                return WaitResult(True, document, pacer.clock() - started, errors, last_error)
        now = pacer.clock()
        left = started + timeout - now
        pause = polled + pacer.delay(document is not None and bool(document.events)) - now
        confirming = pacer.error is None and confirms()
        if confirming:
            pause = min(pause, _CONFIRMING_PAUSE)
        if left <= 0:
            if not confirming or shortest == _CONFIRMING_TIMEOUT:
                return WaitResult(False, document, now - started, errors, last_error)
            shortest = _CONFIRMING_TIMEOUT
        # the last poll is at the end of the time, so that no event of the last second is missed
        pacer.sleep(max(0.0, min(pause, left)))


class EventWait:
    """A wait for a state of the selected events.

    Args:
        state: one of STATES; "scheduled" and "started" need an event with that status, "absent"
            needs none at all in ABSENCES_NEEDED good documents in a row.
        selection: the events to wait for.
        session: the session with IMDS.
    """

    def __init__(self, state: str, selection: Selection, session: ImdsSession) -> None:
        self._state = state
        self._selection = selection
        self._session = session
        self._absences = 0

    def wait(self, timeout: float) -> WaitResult:
        """Wait until the state is reached or can no longer be; raise ImdsRefused for an unsupported api-version."""
        return wait_for(self._session.pacer, self._poll(), self._is_finished, timeout, self._confirms)

    def poll_once(self) -> WaitResult:
        """Return the result of a single poll."""
        clock = self._session.pacer.clock
        started = clock()
        try:
            return WaitResult(True, self._poll()(ANSWER_TIMEOUT), clock() - started, 0, None)
        except ImdsError as error:
            return WaitResult(False, None, clock() - started, 1, error)

    def outcome(self, waited: WaitResult) -> str:
        """Return how a wait ended: "reached", "timeout", or "gone" if every event of ``event_ids`` is gone."""
        if waited.document is None or not waited.reached:
            return "timeout"
        return "reached" if self._reached(waited.document) else "gone"

    def result(self, waited: WaitResult) -> dict[str, Any]:
        """Return the selected events and the errors as plain JSON values."""
        document = waited.document
        name = self._session.resource_name
        picked = self._selection.pick(document, name) if document is not None else []
        result = {
            "events": [event.as_dict() for event in picked],
            "elapsed": round(waited.elapsed, 2),
            "incarnation": document.incarnation if document is not None else None,
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
        if waited.document is None:
            return f"nothing is known of the events after {waited.elapsed:.0f} seconds: {waited.last_error}"
        if self._state == "absent":
            return f"the events are not over after {waited.elapsed:.0f} seconds"
        return f"no event is {self._state} after {waited.elapsed:.0f} seconds"

    def _poll(self) -> Callable[[float], EventDocument]:
        return self._session.event_poll(self._selection.needs_own_name, self._confirms)

    def _is_finished(self, document: EventDocument) -> bool:
        """Return True if the wait is over; called once per good document, because it counts absences."""
        self._absences = self._absences + 1 if self._is_absent(document) else 0
        return self._reached(document) or self._gone()

    def _confirms(self) -> bool:
        """Return True if one more document without the events would end the wait."""
        return self._counts_absences() and self._absences == ABSENCES_NEEDED - 1

    def _reached(self, document: EventDocument) -> bool:
        if self._state == "absent":
            return self._absences >= ABSENCES_NEEDED
        events = self._selection.pick(document, self._session.resource_name)
        statuses = {event.status.lower() for event in events}
        return bool(events) if self._state == "present" else self._state in statuses

    def _gone(self) -> bool:
        """Return True if every event of ``event_ids`` is gone."""
        return self._counts_absences() and self._absences >= ABSENCES_NEEDED

    def _counts_absences(self) -> bool:
        return self._state == "absent" or bool(self._selection.event_ids)

    def _is_absent(self, document: EventDocument) -> bool:
        """Return True if the document surely lists no selected event; for other states than "absent", by id only."""
        if not document.complete or self._has_selected_events(document):
            return False
        if self._state != "absent":
            return True
        return not self._selection.pick(document, self._session.resource_name) and not self._unknown(document)

    def _unknown(self, document: EventDocument) -> bool:
        """Return True if a selected event may affect the VM: its Resources are not readable."""
        of_any_vm = self._selection._replace(affects=ANY)
        unread = [event for event in document.events if not event.resources or event.key in document.doubtful]
        return any(of_any_vm.matches(event, None) for event in unread)

    def _has_selected_events(self, document: EventDocument) -> bool:
        """Return True if an event of ``event_ids`` is listed, whatever its other values."""
        return any(document.find(event_id) is not None for event_id in self._selection.event_ids or ())
